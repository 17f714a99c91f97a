package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// secretForm is what a person entered for a secret. Its value is never shown again, also
// where something else in the form is wrong.
type secretForm struct {
	Name, Hosts  string
	Replaces     bool
	Field, Fault string // what is wrong, if anything is
}

func secretFormOf(v *visit, replaces bool) (secretForm, tenants.NewSecretValue) {
	form := secretForm{Name: v.FormValue("name"), Hosts: v.FormValue("hosts"), Replaces: replaces}
	return form, tenants.NewSecretValue{Name: form.Name, Value: v.FormValue("value"), Hosts: strings.Split(form.Hosts, ",")}
}

// takes keeps what is wrong with the form, if that is what the error tells.
func (f *secretForm) takes(err error) bool {
	invalid, ok := errors.AsType[*tenants.Invalid](err)
	if ok {
		f.Field, f.Fault = invalid.Field, invalid.Message
	}
	return ok
}

func (f secretForm) fields() []ui.Field {
	fields := []ui.Field{
		{Kind: ui.TextField, Name: "name", Label: "Name", Value: f.Name, MaxLength: 60, Autocomplete: "off", Help: "Steps use the secret by this name, such as ERP key. It cannot be changed later."},
		{Kind: ui.SecretField, Name: "value", Label: "Secret", Help: "A key, token or password of another system. It is stored encrypted and never shown again."},
		{Kind: ui.TextField, Name: "hosts", Label: "Hosts", Value: f.Hosts, Optional: true, Autocomplete: "off",
			Help: "Where it may be sent, apart by commas, such as api.example.com. Without any it may be sent wherever a pipeline says."},
	}
	if f.Replaces {
		fields = fields[1:]
	}
	for i := range fields {
		if fields[i].Name == f.Field {
			fields[i].Error = f.Fault
		}
	}
	return fields
}

// addSecretView is the form that adds a secret.
type addSecretView struct {
	v    *visit
	Form secretForm
}

func (s *Server) addSecretPage(v *visit) error {
	view := addSecretView{v: v, Form: secretForm{Name: v.QueryParam("name")}}
	return v.page(http.StatusOK, v.narrow("Add a secret"), addSecretBody(view))
}

func (s *Server) addSecret(v *visit) error {
	form, given := secretFormOf(v, false)
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		_, err := tenants.AddSecret(ctx, tx, s.vault, given, v.me)
		return err
	})
	if form.takes(err) {
		v.saved = false
		return v.page(http.StatusUnprocessableEntity, v.narrow("Error: 1 thing to fix"), addSecretBody(addSecretView{v, form}))
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("secrets"))
}

func (s *Server) replaceSecret(v *visit) error {
	view := secretView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	form, given := secretFormOf(v, true)
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.ReplaceSecret(ctx, tx, s.vault, view.Secret.ID, given, v.me)
	})
	if form.takes(err) {
		v.saved, view.Form = false, form
		return v.page(http.StatusUnprocessableEntity, v.narrow("Error: 1 thing to fix"), secretBody(view))
	}
	if err != nil {
		return err
	}
	return v.redirect(view.path())
}

// deleteSecretPage asks; only its form deletes.
func (s *Server) deleteSecretPage(v *visit) error {
	view := secretView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.narrow("Delete "+view.Secret.Name), deleteSecretBody(view))
}

func (s *Server) deleteSecret(v *visit) error {
	view := secretView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.DeleteSecret(ctx, tx, view.Secret.ID, v.me)
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("secrets"))
}

// consequences say what stops working without the secret.
func (p secretView) consequences() []ui.Row {
	rows := p.uses()
	for i := range rows {
		rows[i].EndNote = "fails at these steps from then on"
		if !p.Uses[i].Live {
			rows[i].EndNote = "cannot be published until another is chosen"
		}
	}
	if len(rows) == 0 {
		rows = []ui.Row{{Reason: ui.Words("No pipeline uses it.")}}
	}
	return append(rows, ui.Row{Reason: ui.Words("It stays valid at the other system. Whoever has it can use it there until it is withdrawn there.")})
}
