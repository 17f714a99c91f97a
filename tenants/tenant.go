package tenants

import "time"

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
	Zone      string
	CreatedAt time.Time
}
