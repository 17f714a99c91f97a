package tenants

import (
	"context"
	"fmt"
	"time"
)

// Tenant is a customer organisation, called a workspace on screens.
type Tenant struct {
	ID        ID
	Name      string
	Zone      string // IANA name, in which its days and months begin
	Demo      bool   // made by local mode, with people one can continue as
	CreatedAt time.Time
}

// User is a person who can sign in; she may be a member of several tenants.
type User struct {
	ID        UserID
	Email     string // lower case
	Name      string
	Zone      string // IANA name that she chose; empty means the workspace's
	CreatedAt time.Time
}

// TenantOf reads the tenant that the transaction is bound to.
func TenantOf(ctx context.Context, tx Tx) (Tenant, error) {
	var t Tenant
	err := tx.QueryRow(ctx, `SELECT id, name, zone, demo, created_at FROM tenants WHERE id = $1`, tx.Tenant).
		Scan(&t.ID, &t.Name, &t.Zone, &t.Demo, &t.CreatedAt)
	if err != nil {
		return Tenant{}, fmt.Errorf("read the workspace: %w", err)
	}
	return t, nil
}
