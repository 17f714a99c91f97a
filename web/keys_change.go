package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// keyForm is what a person entered for a key. Its value is never shown again, also where
// something else in the form is wrong.
type keyForm struct {
	Provider, BaseURL, Overlap string
	Replaces                   bool
	Field, Fault               string // what is wrong, if anything is
}

func keyFormOf(v *visit, replaces bool) (keyForm, tenants.NewProviderKey) {
	form := keyForm{Provider: v.FormValue("provider"), BaseURL: v.FormValue("base_url"), Overlap: v.FormValue("overlap"), Replaces: replaces}
	return form, tenants.NewProviderKey{Provider: form.Provider, Value: v.FormValue("value"), BaseURL: form.BaseURL}
}

// takes keeps what is wrong with the form, if that is what the error tells.
func (f *keyForm) takes(err error) bool {
	invalid, ok := errors.AsType[*tenants.Invalid](err)
	if ok {
		f.Field, f.Fault = invalid.Field, invalid.Message
	}
	return ok
}

func (f keyForm) fields(providers []string) []ui.Field {
	provider := ui.Field{Kind: ui.ChoiceField, Name: "provider", Label: "Provider", Value: f.Provider}
	for _, name := range providers {
		provider.Options = append(provider.Options, ui.Option{Value: name, Label: providerName(name)})
	}
	fields := []ui.Field{
		provider,
		{Kind: ui.SecretField, Name: "value", Label: "Key", Help: "From the provider’s website. It is stored encrypted and never shown again."},
		{Kind: ui.TextField, Name: "base_url", Label: "Address", Value: f.BaseURL, Optional: true, MaxLength: 500, Autocomplete: "off",
			Help: "Only for a server of your own that speaks this provider’s format, such as https://models.example.com/v1. It must be on the public internet."},
	}
	if f.Replaces {
		fields = append(fields[1:], ui.Field{Kind: ui.ChoiceField, Name: "overlap", Label: "The old key stays usable for", Value: f.Overlap, Options: overlaps})
	}
	for i := range fields {
		if fields[i].Name == f.Field {
			fields[i].Error = f.Fault
		}
	}
	return fields
}

// addKeyView is the form that adds a key.
type addKeyView struct {
	v    *visit
	Form keyForm
}

func (p addKeyView) fields() []ui.Field { return p.Form.fields(p.v.s.keyed()) }

func (s *Server) addKeyPage(v *visit) error {
	view := addKeyView{v: v, Form: keyForm{Provider: v.QueryParam("provider")}}
	return v.page(http.StatusOK, v.narrow("Add a provider key"), addKeyBody(view))
}

func (s *Server) addKey(v *visit) error {
	form, given := keyFormOf(v, false)
	var id tenants.ProviderKeyID
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) (err error) {
		if !slices.Contains(s.keyed(), given.Provider) {
			return &tenants.Invalid{Field: "provider", Message: "Choose a provider of the list."}
		}
		id, err = tenants.AddProviderKey(ctx, tx, s.vault, given, v.me)
		return err
	})
	if form.takes(err) {
		v.saved = false
		return v.page(http.StatusUnprocessableEntity, v.narrow("Error: 1 thing to fix"), addKeyBody(addKeyView{v, form}))
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("settings", "keys", id.String()))
}

// changeKey makes one change of the key that the address names, and shows the key again.
func (v *visit) changeKey(change func(ctx context.Context, tx tenants.Tx, id tenants.ProviderKeyID) error) error {
	id, err := idParam[tenants.ProviderKey](v, "key")
	if err != nil {
		return err
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return change(ctx, tx, id) }); err != nil {
		return err
	}
	return v.redirect(v.path("settings", "keys", id.String()))
}

func (s *Server) rotateKey(v *visit) error {
	form, given := keyFormOf(v, true)
	err := v.changeKey(func(ctx context.Context, tx tenants.Tx, id tenants.ProviderKeyID) error {
		overlap, err := overlapFrom(form.Overlap)
		if err != nil {
			return err
		}
		seen, err := strconv.Atoi(v.FormValue("seen"))
		if err != nil {
			return tenants.ErrKeyMoved
		}
		return tenants.RotateProviderKey(ctx, tx, s.vault, id, seen, given, overlap, v.me)
	})
	if !form.takes(err) {
		return err
	}
	view := keyView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	v.saved, view.Form = false, form
	return view.show(http.StatusUnprocessableEntity)
}

func (s *Server) restoreKey(v *visit) error {
	return v.changeKey(func(ctx context.Context, tx tenants.Tx, id tenants.ProviderKeyID) error {
		return tenants.RestoreProviderKey(ctx, tx, id, v.me)
	})
}

func (s *Server) endOldKey(v *visit) error {
	return v.changeKey(func(ctx context.Context, tx tenants.Tx, id tenants.ProviderKeyID) error {
		return tenants.EndOldProviderKey(ctx, tx, id, v.me)
	})
}

// tryKey tests the key, with no transaction open while the provider is asked.
func (s *Server) tryKey(v *visit) error {
	if s.KeyTrial == nil {
		return errNotFound
	}
	id, err := idParam[tenants.ProviderKey](v, "key")
	if err != nil {
		return err
	}
	var under tenants.KeyUnderTest
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) (err error) {
		under, err = tenants.BeginKeyTest(ctx, tx, s.vault, id)
		return err
	})
	if err != nil {
		return err
	}
	passed, words := s.KeyTrial.Try(v.ctx(), under.Provider, under.Key)
	return v.changeKey(func(ctx context.Context, tx tenants.Tx, _ tenants.ProviderKeyID) error {
		return tenants.EndKeyTest(ctx, tx, under, passed, words, v.me)
	})
}

// removeKeyPage asks; only its form removes.
func (s *Server) removeKeyPage(v *visit) error {
	view := keyView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.narrow("Remove the key"), removeKeyBody(view))
}

func (s *Server) removeKey(v *visit) error {
	id, err := idParam[tenants.ProviderKey](v, "key")
	if err != nil {
		return err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.RemoveProviderKey(ctx, tx, id, v.me)
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("settings", "keys"))
}
