package tenants

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Vault seals what a tenant keeps secret. Each value is encrypted under a key of its own,
// and that key under one that is derived from the server's secret, so that reading the
// whole database opens nothing.
type Vault struct {
	sealer tink.AEAD
	keyID  string
}

// ErrSealed tells that a value cannot be opened here: it was sealed under another server
// secret, or for another row.
var ErrSealed = errors.New("a sealed value cannot be opened")

// NewVault derives the vault's key from the server's secret. All processes of an
// installation have the same one; under a new secret nothing that was sealed opens.
func NewVault(secret Secret) (Vault, error) {
	key := secret.Derive("vault key", [16]byte{}, 1)
	outer, err := subtle.NewAESGCM(key[:])
	if err != nil {
		return Vault{}, fmt.Errorf("make the vault's key: %w", err)
	}
	name := secret.Derive("vault key's name", [16]byte{}, 1)
	return Vault{sealer: aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), outer), keyID: hex.EncodeToString(name[:4])}, nil
}

// KeyID names the key under which the vault seals; it tells nothing about it.
func (v Vault) KeyID() string { return v.keyID }

// Seal encrypts a value for one column of one row of a tenant.
func (v Vault) Seal(tenant ID, row [16]byte, column string, value []byte) ([]byte, error) {
	sealed, err := v.sealer.Encrypt(value, boundTo(tenant, row, column))
	if err != nil {
		return nil, fmt.Errorf("seal a value: %w", err)
	}
	return sealed, nil
}

// Open gives back what Seal was given for the same place; ErrSealed where it cannot.
func (v Vault) Open(tenant ID, row [16]byte, column string, sealed []byte) ([]byte, error) {
	value, err := v.sealer.Decrypt(sealed, boundTo(tenant, row, column))
	if err != nil {
		return nil, ErrSealed // the cause tells nothing that helps
	}
	return value, nil
}

// boundTo is the place that a sealed value belongs to.
func boundTo(tenant ID, row [16]byte, column string) []byte {
	return append(append(append([]byte{}, tenant[:]...), row[:]...), column...)
}

// String hides the vault, whatever prints it.
func (v Vault) String() string { return masked }

// GoString hides the vault from %#v.
func (v Vault) GoString() string { return masked }
