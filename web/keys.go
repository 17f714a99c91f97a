package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// KeyTrial tries a key at its provider, by one small call, and says for people what came of
// it.
type KeyTrial interface {
	Try(ctx context.Context, provider string, key tenants.OpenedProviderKey) (passed bool, words string)
}

// providerNames are those that people know.
var providerNames = map[string]string{"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Google Gemini", "google": "Google"}

func providerName(provider string) string {
	if name := providerNames[provider]; name != "" {
		return name
	}
	return provider
}

func providerOf(model string) string {
	provider, _, _ := strings.Cut(model, "/")
	return provider
}

// keyed are the providers of models that can be called with a key, in the order of set-up.
// What costs pretend dollars needs none.
func (s *Server) keyed() []string {
	var list []string
	for _, model := range s.Models {
		provider := providerOf(model.ID)
		price, err := ledger.PriceAt(model.ID, s.clock())
		if pretend := err == nil && price.Funds == ledger.Pretend; !pretend && !slices.Contains(list, provider) {
			list = append(list, provider)
		}
	}
	return list
}

// modelsOf are a provider's models.
func (s *Server) modelsOf(provider string) []Model {
	var list []Model
	for _, model := range s.Models {
		if providerOf(model.ID) == provider {
			list = append(list, model)
		}
	}
	return list
}

// keysView are the workspace's keys at providers, by what people may know of them.
type keysView struct {
	v    *visit
	All  []tenants.ProviderKey
	Uses map[string][]pipeline.ModelUse // by provider
}

func (s *Server) keysPage(v *visit) error {
	view := keysView{v: v}
	if err := v.inTx(view.read); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.narrow("Provider keys"), keysBody(view))
}

func (p *keysView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if p.All, err = tenants.ProviderKeys(ctx, tx); err != nil {
		return err
	}
	p.Uses, err = pipeline.ModelUses(ctx, tx)
	return err
}

// providers are all that have models here or a key of the workspace.
func (p keysView) providers() []string {
	list := p.v.s.keyed()
	for _, key := range p.All {
		if key.RemovedAt == nil && !slices.Contains(list, key.Provider) {
			list = append(list, key.Provider)
		}
	}
	return list
}

func (p keysView) inUse(provider string) *tenants.ProviderKey {
	for i, key := range p.All {
		if key.Provider == provider && key.RemovedAt == nil {
			return &p.All[i]
		}
	}
	return nil
}

func (p keysView) rows() []ui.Row {
	var rows []ui.Row
	for _, provider := range p.providers() {
		row := ui.Row{Name: providerName(provider), EndNote: usedBy(p.Uses[provider])}
		if key := p.inUse(provider); key != nil {
			row.Href, row.End, row.Badge = p.v.path("settings", "keys", key.ID.String()), key.Hint, keyBadge(*key)
			row.Reason = ui.Words(keyEntered(*key, clock{p.v.now, p.v.zone()}))
		} else {
			row.Href, row.End = p.v.path("settings", "keys", "add")+"?provider="+provider, "Add a key"
			row.Reason = p.without(provider)
		}
		rows = append(rows, row)
	}
	return rows
}

// without tells what happens where the workspace has no key of its own.
func (p keysView) without(provider string) ui.Sentence {
	if slices.ContainsFunc(p.v.s.modelsOf(provider), func(m Model) bool { return !m.OwnKeyOnly }) {
		return ui.Words("No key of your own: models are called with this installation’s key.")
	}
	return ui.Sentence{ui.Strong("No key"), ui.Plain(": its models cannot be called until one is added.")}
}

// gone are keys that were removed and that charges may still name.
func (p keysView) gone() []ui.Row {
	var rows []ui.Row
	for _, key := range p.All {
		if key.RemovedAt == nil {
			continue
		}
		when := clock{p.v.now, p.v.zone()}.when(*key.RemovedAt)
		rows = append(rows, ui.Row{Name: providerName(key.Provider), End: key.Hint, Reason: ui.Words("Removed by " + key.RemovedBy + " " + when + ".")})
	}
	return rows
}

func usedBy(uses []pipeline.ModelUse) string {
	if len(uses) == 0 {
		return "not used"
	}
	return "used by " + ui.Plural(int64(len(uses)), "pipeline", "pipelines")
}

// keyEntered tells who gave the key its value, and when.
func keyEntered(key tenants.ProviderKey, c clock) string {
	if key.RotatedAt != nil {
		return "Rotated by " + key.RotatedBy + " " + c.when(*key.RotatedAt) + "."
	}
	return "Added by " + key.AddedBy + " " + c.when(key.AddedAt) + "."
}

// keyBadge tells what the newest test came to.
func keyBadge(key tenants.ProviderKey) *ui.Badge {
	switch {
	case key.Test == nil:
		return &ui.Badge{Status: ui.Queued, Words: "Not tested"}
	case key.Test.Passed:
		return &ui.Badge{Status: ui.Done, Words: "Works"}
	}
	return &ui.Badge{Status: ui.Failed, Words: "Test failed"}
}
