package web

import (
	"context"
	"net/http"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// secretsView are the workspace's secrets, by what people know of them.
type secretsView struct {
	v    *visit
	All  []tenants.StoredSecret
	Uses map[string][]pipeline.SecretUse
}

func (s *Server) secretsPage(v *visit) error {
	view := secretsView{v: v}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) })
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.narrow("Secrets"), secretsBody(view))
}

// narrow is the frame of a page about the workspace itself.
func (v *visit) narrow(title string) ui.Layout {
	frame := v.frame(title, inNone)
	frame.Narrow = true
	return frame
}

func (p *secretsView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	if p.All, err = tenants.StoredSecrets(ctx, tx); err != nil {
		return err
	}
	p.Uses, err = pipeline.SecretUses(ctx, tx)
	return err
}

func (p secretsView) rows() []ui.Row {
	var rows []ui.Row
	for _, secret := range p.All {
		rows = append(rows, ui.Row{
			Name: secret.Name, Href: p.v.path("secrets", secret.ID.String()), End: secret.Hint,
			EndNote: p.usedBy(secret.Name), Reason: ui.Words(entered(secret, clock{p.v.now, p.v.zone()}) + " " + goesTo(secret.Hosts)),
		})
	}
	return rows
}

func (p secretsView) usedBy(name string) string {
	n := len(p.Uses[name])
	if n == 0 {
		return "not used"
	}
	return "used by " + ui.Plural(int64(n), "pipeline", "pipelines")
}

// entered tells who gave the secret its value, and when.
func entered(secret tenants.StoredSecret, c clock) string {
	if secret.ReplacedAt != nil {
		return "Replaced by " + secret.ReplacedBy + " " + c.when(*secret.ReplacedAt) + "."
	}
	return "Added by " + secret.AddedBy + " " + c.when(secret.AddedAt) + "."
}

// goesTo tells where the secret may be sent.
func goesTo(hosts []string) string {
	if len(hosts) == 0 {
		return "It may be sent to any host."
	}
	return "It may be sent to " + ui.List(hosts) + "."
}

// secretView is one secret: what uses it, and the form that replaces it.
type secretView struct {
	v      *visit
	Secret tenants.StoredSecret
	Uses   []pipeline.SecretUse
	Form   secretForm
}

func (s *Server) secretPage(v *visit) error {
	view := secretView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	view.Form = secretForm{Hosts: strings.Join(view.Secret.Hosts, ", "), Replaces: true}
	return v.page(http.StatusOK, v.narrow(view.Secret.Name), secretBody(view))
}

// load reads the secret that the address names.
func (p *secretView) load() error {
	id, err := idParam[tenants.StoredSecret](p.v, "secret")
	if err != nil {
		return err
	}
	return p.v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		list := secretsView{v: p.v}
		if err := list.read(ctx, tx); err != nil {
			return err
		}
		for _, secret := range list.All {
			if secret.ID == id {
				p.Secret, p.Uses = secret, list.Uses[secret.Name]
				return nil
			}
		}
		return tenants.ErrNoSecret
	})
}

func (p secretView) path(more ...string) string {
	return p.v.path(append([]string{"secrets", p.Secret.ID.String()}, more...)...)
}

func (p secretView) facts() []ui.Pair {
	zone, now := p.v.zone(), p.v.now
	pairs := []ui.Pair{{Label: "Added", Value: p.Secret.AddedBy + ", " + ui.When(p.Secret.AddedAt, now, zone)}}
	if p.Secret.ReplacedAt != nil {
		pairs = append(pairs, ui.Pair{Label: "Replaced", Value: p.Secret.ReplacedBy + ", " + ui.When(*p.Secret.ReplacedAt, now, zone)})
	}
	if p.Secret.Hint != "" {
		pairs = append(pairs, ui.Pair{Label: "Ends in", Value: p.Secret.Hint})
	}
	return append(pairs, ui.Pair{Label: "May be sent to", Value: hostsWords(p.Secret.Hosts)})
}

func hostsWords(hosts []string) string {
	if len(hosts) == 0 {
		return "any host"
	}
	return ui.List(hosts)
}

func (p secretView) uses() []ui.Row {
	var rows []ui.Row
	for _, use := range p.Uses {
		note := "in its live version"
		if !use.Live {
			note = "in its draft only"
		}
		rows = append(rows, ui.Row{Name: use.Name, Href: p.v.path("pipelines", use.Pipeline.String()), EndNote: note, Reason: ui.Sentence{ui.Name(ui.List(use.Steps))}})
	}
	return rows
}
