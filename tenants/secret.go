package tenants

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
)

// Secret is the server's own secret, from which tokens are derived. A token that goes
// out by mail can so be made again at the moment of sending, and the database needs
// only its hash: reading the whole database opens nothing.
type Secret struct {
	key []byte
}

// minSecretBytes is what HMAC-SHA256 makes full use of.
const minSecretBytes = 32

// NewSecret takes at least 32 random bytes. All processes of an installation share
// them; new ones end every link and code that is still open.
func NewSecret(key []byte) (Secret, error) {
	if len(key) < minSecretBytes {
		return Secret{}, fmt.Errorf("the server secret has %d bytes and needs at least %d", len(key), minSecretBytes)
	}
	return Secret{key: append([]byte(nil), key...)}, nil
}

// Derive makes the token of one thing. Another purpose, id or generation gives a token
// that tells nothing about this one; a new generation replaces a token that leaked.
func (s Secret) Derive(purpose string, id [16]byte, generation int) [32]byte {
	if len(s.key) == 0 {
		panic("a token was derived from a secret that was never set")
	}
	mac := hmac.New(sha256.New, s.key)
	// The lengths are fixed or written first, so no two inputs read the same.
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(purpose))))
	mac.Write([]byte(purpose))
	mac.Write(id[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(generation)))
	return [32]byte(mac.Sum(nil))
}

// SeatToken is what the link of a review's seat carries: 43 characters, safe in a URL.
func (s Secret) SeatToken(seat [16]byte, generation int) string {
	token := s.Derive("review seat", seat, generation)
	return base64.RawURLEncoding.EncodeToString(token[:])
}

// HashToken is what the database keeps of a token's text, and what it is found by. The
// text is hashed as it came, so an altered or a cut token costs the same look-up as a
// right one and simply finds nothing.
func HashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

const masked = "[secret]"

// String hides the secret, whatever prints it.
func (s Secret) String() string { return masked }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return masked }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText refuses: a secret is never part of a document.
func (s Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("a server secret cannot be written out")
}
