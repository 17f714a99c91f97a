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
	sealer  tink.AEAD
	keyID   string
	earlier []tink.AEAD // of secrets that the server had before; they only open
}

// ErrSealed tells that a value cannot be opened here: it was sealed under another server
// secret, or for another row.
var ErrSealed = errors.New("a sealed value cannot be opened")

// NewVault derives the vault's key from the server's secret. All processes of an
// installation have the same one. What was sealed under another secret opens where that one
// is among the earlier ones; Rewrap seals it anew, so that they can be forgotten.
func NewVault(secret Secret, earlier ...Secret) (Vault, error) {
	sealer, err := sealerOf(secret)
	if err != nil {
		return Vault{}, err
	}
	name := secret.Derive("vault key's name", [16]byte{}, 1)
	vault := Vault{sealer: sealer, keyID: hex.EncodeToString(name[:4])}
	for _, old := range earlier {
		opener, err := sealerOf(old)
		if err != nil {
			return Vault{}, err
		}
		vault.earlier = append(vault.earlier, opener)
	}
	return vault, nil
}

func sealerOf(secret Secret) (tink.AEAD, error) {
	key := secret.Derive("vault key", [16]byte{}, 1)
	outer, err := subtle.NewAESGCM(key[:])
	if err != nil {
		return nil, fmt.Errorf("make the vault's key: %w", err)
	}
	return aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), outer), nil
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
	place := boundTo(tenant, row, column)
	for _, opener := range append([]tink.AEAD{v.sealer}, v.earlier...) {
		if value, err := opener.Decrypt(sealed, place); err == nil {
			return value, nil
		}
	}
	return nil, ErrSealed // the causes tell nothing that helps
}

// boundTo is the place that a sealed value belongs to.
func boundTo(tenant ID, row [16]byte, column string) []byte {
	return append(append(append([]byte{}, tenant[:]...), row[:]...), column...)
}

// String hides the vault, whatever prints it.
func (v Vault) String() string { return masked }

// GoString hides the vault from %#v.
func (v Vault) GoString() string { return masked }
