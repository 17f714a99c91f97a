package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// keyView is one key: what is known of it, and the forms that change it.
type keyView struct {
	v      *visit
	Key    tenants.ProviderKey
	Uses   []pipeline.ModelUse
	Spent  ledger.Micros // in this month
	Form   keyForm
	Limits limitsForm
}

func (s *Server) keyPage(v *visit) error {
	view := keyView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	return view.show(http.StatusOK)
}

func (p keyView) show(status int) error {
	title := providerName(p.Key.Provider)
	if status != http.StatusOK {
		title = "Error: 1 thing to fix"
	}
	return p.v.page(status, p.v.narrow(title), keyBody(p))
}

// load reads the key that the address names. One that was removed has no page.
func (p *keyView) load() error {
	id, err := idParam[tenants.ProviderKey](p.v, "key")
	if err != nil {
		return err
	}
	return p.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		list := keysView{v: p.v}
		if err := list.read(ctx, tx); err != nil {
			return err
		}
		if p.Key, err = tenants.ProviderKeyByID(ctx, tx, id); err != nil {
			return err
		}
		if p.Key.RemovedAt != nil {
			return tenants.ErrNoProviderKey
		}
		if p.Spent, err = spentWith(ctx, tx, id); err != nil {
			return err
		}
		p.Uses = list.Uses[p.Key.Provider]
		p.Form = keyForm{Replaces: true, BaseURL: p.Key.BaseURL, Overlap: overlaps[0].Value}
		p.Limits = limitsFormOf(p.v.s.modelsOf(p.Key.Provider), p.Key.Limits)
		return nil
	})
}

// spentWith is what the calls made with a key have cost in this month.
func spentWith(ctx context.Context, tx tenants.Tx, key tenants.ProviderKeyID) (ledger.Micros, error) {
	month, err := ledger.MonthAt(ctx, tx, tx.Now)
	if err != nil {
		return 0, err
	}
	lines, err := ledger.UsageOf(ctx, tx, month, ledger.Real, ledger.ByKey)
	for _, line := range lines {
		if line.Key == key.String() {
			return line.Cost, err
		}
	}
	return 0, err
}

func (p keyView) path(more ...string) string {
	return p.v.path(append([]string{"settings", "keys", p.Key.ID.String()}, more...)...)
}

func (p keyView) crumbs(more ...ui.Link) []ui.Link {
	here := ui.Link{Text: providerName(p.Key.Provider)}
	if len(more) > 0 {
		here.Href = p.path()
	}
	return append([]ui.Link{{Text: "Provider keys", Href: p.v.path("settings", "keys")}, here}, more...)
}

func (p keyView) lead() ui.Sentence {
	return ui.Words("Calls to " + providerName(p.Key.Provider) + "’s models are made with this key. The provider bills them to you; caps count them all the same.")
}

func (p keyView) facts() []ui.Pair {
	zone, now := p.v.zone(), p.v.now
	pairs := []ui.Pair{{Label: "Added", Value: p.Key.AddedBy + ", " + ui.When(p.Key.AddedAt, now, zone)}}
	if p.Key.RotatedAt != nil {
		pairs = append(pairs, ui.Pair{Label: "Rotated", Value: p.Key.RotatedBy + ", " + ui.When(*p.Key.RotatedAt, now, zone)})
	}
	if p.Key.Hint != "" {
		pairs = append(pairs, ui.Pair{Label: "Ends in", Value: p.Key.Hint})
	}
	return append(pairs, ui.Pair{Label: "Sent to", Value: sentTo(p.Key.BaseURL)},
		ui.Pair{Label: "Spent this month", Value: p.Spent.String() + ", billed by the provider"})
}

func sentTo(baseURL string) string {
	if baseURL == "" {
		return "the provider’s own address"
	}
	return baseURL
}

// tested tells of the newest test.
func (p keyView) tested() ui.Sentence {
	test := p.Key.Test
	if test == nil {
		return ui.Words("It has not been tested since it was entered.")
	}
	when := clock{p.v.now, p.v.zone()}.when(test.At)
	if test.Passed {
		return ui.Sentence{ui.Strong("It works"), ui.Plain(", as tested " + when + ". " + test.Words)}
	}
	return ui.Sentence{ui.Strong("The test failed"), ui.Plain(" " + when + ". " + test.Words)}
}

func (p keyView) uses() []ui.Row {
	var rows []ui.Row
	for _, use := range p.Uses {
		note := "in its live version"
		if !use.Live {
			note = "in its draft only"
		}
		rows = append(rows, ui.Row{Name: use.Name, Href: p.v.path("pipelines", use.Pipeline.String()), EndNote: note})
	}
	return rows
}

// old tells of the key that was replaced.
func (p keyView) old() ui.Sentence {
	what := "The key before"
	if p.Key.Old.Hint != "" {
		what += ", which ends in " + p.Key.Old.Hint + ","
	}
	return ui.Words(what + " stays usable until " + ui.When(p.Key.Old.Until, p.v.now, p.v.zone()) +
		". It serves where the provider refuses the new one, and is erased then.")
}

func (p keyView) seen() []ui.Hidden {
	return []ui.Hidden{{Name: "seen", Value: strconv.Itoa(p.Key.Generation)}}
}

// consequences say what happens without the key.
func (p keyView) consequences() []ui.Row {
	note := "goes on with this installation’s key, and its calls are charged to the workspace"
	if !p.sharedToo() {
		note = "fails at these steps from then on"
	}
	rows := p.uses()
	for i := range rows {
		if p.Uses[i].Live {
			rows[i].EndNote = note
		}
	}
	if len(rows) == 0 {
		rows = []ui.Row{{Reason: ui.Words("No pipeline asks a model of this provider.")}}
	}
	return append(rows, ui.Row{Reason: ui.Words("Calls under way end as they are. The key stays valid at the provider until it is withdrawn there.")})
}

// sharedToo tells whether the installation has a key for the provider itself.
func (p keyView) sharedToo() bool {
	for _, model := range p.v.s.modelsOf(p.Key.Provider) {
		if !model.OwnKeyOnly {
			return true
		}
	}
	return false
}

// overlaps are for how long a replaced key may stay usable.
var overlaps = []ui.Option{
	{Value: "24h", Label: "One day", Help: "It serves where the provider does not take the new one yet, and one can go back to it."},
	{Value: "168h", Label: "One week"},
	{Value: "0s", Label: "Not at all", Help: "It is erased at once. Choose this if others know it."},
}

// overlapFrom reads a choice; any other is an *tenants.Invalid.
func overlapFrom(text string) (time.Duration, error) {
	for _, option := range overlaps {
		if option.Value == text {
			return time.ParseDuration(text)
		}
	}
	return 0, &tenants.Invalid{Field: "overlap", Message: fmt.Sprintf("Choose for how long the old key stays usable: %s, %s or %s.", "a day", "a week", "not at all")}
}

// weight makes the test the page's main thing while the key is not known to work.
func (p keyView) weight() ui.ButtonKind {
	if p.Key.Test == nil || !p.Key.Test.Passed {
		return ui.Primary
	}
	return ui.Outlined
}
