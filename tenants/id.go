package tenants

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// IDOf is the identity of a thing of type Of: a UUIDv7, so that newer things sort
// later. Different things have different identity types, so the compiler keeps them
// apart: type RunID = IDOf[Run].
type IDOf[Of any] [16]byte

// ID identifies a tenant, UserID a person who can sign in.
type (
	ID     = IDOf[Tenant]
	UserID = IDOf[User]
)

// NewID makes a fresh identity.
func NewID[Of any]() IDOf[Of] { return IDOf[Of](uuid.Must(uuid.NewV7())) }

// ParseID reads the text form. Anything that is not a UUID is an error, so a hand-made
// URL ends as "not found" before it reaches the database.
func ParseID[Of any](text string) (IDOf[Of], error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return IDOf[Of]{}, fmt.Errorf("%q is not an id", text)
	}
	return IDOf[Of](id), nil
}

// IsZero tells whether the identity was never set.
func (id IDOf[Of]) IsZero() bool { return id == IDOf[Of]{} }

// String returns the usual text form, 36 characters.
func (id IDOf[Of]) String() string { return uuid.UUID(id).String() }

// Short returns the last eight characters, for people to quote.
func (id IDOf[Of]) Short() string { return id.String()[28:] }

// MarshalText writes the text form, also into JSON.
func (id IDOf[Of]) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText reads the text form, also from JSON.
func (id *IDOf[Of]) UnmarshalText(text []byte) error {
	return (*uuid.UUID)(id).UnmarshalText(text)
}

// UUIDValue gives the identity to Postgres; an unset one is null.
func (id IDOf[Of]) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: id, Valid: !id.IsZero()}, nil
}

// ScanUUID takes the identity from Postgres; null becomes unset.
func (id *IDOf[Of]) ScanUUID(value pgtype.UUID) error {
	*id = IDOf[Of]{}
	if value.Valid {
		*id = value.Bytes
	}
	return nil
}
