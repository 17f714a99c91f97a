package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// workspacesView is where one chooses among workspaces, or names the first.
type workspacesView struct {
	Memberships []tenants.Membership
	Name, Zone  ui.Field
}

// front sends each person to where she works.
func (s *Server) front(v *visit) error {
	if v.user.IsZero() {
		return v.redirect("/signin")
	}
	memberships, err := v.memberships()
	if err != nil {
		return err
	}
	if len(memberships) == 1 {
		return v.redirect(pathIn(memberships[0].Tenant.ID))
	}
	return v.redirect("/workspaces")
}

func (v *visit) memberships() ([]tenants.Membership, error) {
	var memberships []tenants.Membership
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		memberships, err = tenants.MembershipsOf(ctx, stx, v.user)
		return err
	})
	return memberships, err
}

func (s *Server) workspacesPage(v *visit) error {
	return v.workspacesForm(http.StatusOK, "", guessZone(v.Request().Header.Get("Accept-Language")), nil)
}

func (v *visit) workspacesForm(status int, name, zone string, invalid *tenants.Invalid) error {
	memberships, err := v.memberships()
	if err != nil {
		return err
	}
	view := workspacesView{
		Memberships: memberships,
		Name: ui.Field{Kind: ui.TextField, Name: "name", Label: "Name of the workspace", Help: "Usually your company or team.",
			MaxLength: 200, Autocomplete: "organization", Value: name, Focus: invalid == nil && len(memberships) == 0},
		Zone: ui.Field{Kind: ui.ChoiceField, Name: "zone", Label: "Time zone", Help: "Its days and months begin at midnight here.",
			Options: zoneOptions(zone, v.s.clock()), Value: zone},
	}
	if invalid != nil && invalid.Field == "zone" {
		view.Zone.Error = invalid.Message
	} else if invalid != nil {
		view.Name.Error = invalid.Message
	}
	title := "Choose a workspace"
	if len(memberships) == 0 {
		title = "Name your workspace"
	}
	return v.page(status, v.alone(titleOf(title, view.Name, view.Zone)), workspacesBody(title, view))
}

// sameForm is how long a workspace of the same name by the same person counts as the
// same form sent twice.
const sameForm = time.Minute

func (s *Server) makeWorkspace(v *visit) error {
	name, zone := strings.TrimSpace(v.FormValue("name")), v.FormValue("zone")
	var made tenants.Membership
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error {
		user, err := tenants.LockUser(ctx, stx, v.user)
		if err != nil {
			return err
		}
		earlier, err := tenants.MembershipsOf(ctx, stx, v.user)
		if err != nil {
			return err
		}
		for _, one := range earlier {
			if one.Role == tenants.Owner && one.Tenant.Name == name && stx.Now.Sub(one.Tenant.CreatedAt) < sameForm {
				made = one
				return nil
			}
		}
		made, err = tenants.CreateTenant(ctx, stx, name, zone, user)
		return err
	})
	if invalid, ok := errors.AsType[*tenants.Invalid](err); ok {
		return v.workspacesForm(http.StatusUnprocessableEntity, name, zone, invalid)
	}
	if errors.Is(err, tenants.ErrNoUser) {
		return errSignedOut
	}
	if err != nil {
		return err
	}
	return v.redirect(pathIn(made.Tenant.ID))
}
