package web

import (
	"context"

	"tollgate/tenants"
)

// front sends each person to where she works.
func (s *Server) front(v *visit) error {
	if v.user.IsZero() {
		return v.redirect("/signin")
	}
	var memberships []tenants.Membership
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		memberships, err = tenants.MembershipsOf(ctx, stx, v.user)
		return err
	})
	if err != nil {
		return err
	}
	if len(memberships) == 1 {
		return v.redirect(pathIn(memberships[0].Tenant.ID))
	}
	return v.redirect("/workspaces")
}
