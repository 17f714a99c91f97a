package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"tollgate/tenants"
)

// Digest is the SHA-256 of a value's bytes; the zero digest means no value.
type Digest [32]byte

// DigestOf computes the digest of bytes.
func DigestOf(content []byte) Digest { return sha256.Sum256(content) }

// ParseDigest reads the 64 hexadecimal digits of String.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != len(d) {
		return d, fmt.Errorf("%q is not a digest", text)
	} else {
		copy(d[:], raw)
	}
	return d, nil
}

// IsZero tells that there is no value.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// bytes is the digest for Postgres; no value is null.
func (d Digest) bytes() []byte {
	if d.IsZero() {
		return nil
	}
	return d[:]
}

func digestFrom(raw []byte) Digest {
	var d Digest
	copy(d[:], raw)
	return d
}

// Media types of stored values.
const (
	mediaJSON = "application/json"
	// Larger values are kept in chunks of this size.
	chunkSize = 1 << 20
)

// MaxValue bounds a JSON value, MaxFile a file, in bytes.
const (
	MaxValue = 32 << 20
	MaxFile  = 50 << 20
)

// ErrTooLarge tells that a value is beyond its limit.
var ErrTooLarge = errors.New("value too large")

// ErrNoValue tells that no value with the digest is stored for the tenant.
var ErrNoValue = errors.New("no such value")

// queueValue stores content byte for byte, once for each tenant, and notes that the
// run needs it. Equal content that is there already is left alone.
func queueValue(b *tenants.Batch, tenant tenants.ID, run RunID, mediaType string, content []byte) Digest {
	rows := valueRows{}
	digest := rows.addAs(run, mediaType, content)
	rows.queue(b, tenant)
	return digest
}

// Content is a stored value.
type Content struct {
	MediaType string
	Bytes     []byte
}

// Value reads a stored value whole. It returns ErrNoValue for an unknown digest.
func Value(ctx context.Context, tx tenants.Tx, digest Digest) (Content, error) {
	var c Content
	var size int
	err := tx.QueryRow(ctx, `
		SELECT size, media_type, content FROM stored_values WHERE tenant_id = $1 AND digest = $2`,
		tx.Tenant, digest.bytes()).Scan(&size, &c.MediaType, &c.Bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, ErrNoValue
	}
	if err != nil {
		return c, fmt.Errorf("read a value: %w", err)
	}
	if len(c.Bytes) == size {
		return c, nil
	}
	c.Bytes, err = chunks(ctx, tx, digest, size)
	return c, err
}

func chunks(ctx context.Context, tx tenants.Tx, digest Digest, size int) ([]byte, error) {
	rows, err := tx.Query(ctx, `
		SELECT content FROM stored_value_chunks WHERE tenant_id = $1 AND digest = $2 ORDER BY number`,
		tx.Tenant, digest.bytes())
	if err != nil {
		return nil, fmt.Errorf("read a value's chunks: %w", err)
	}
	content := make([]byte, 0, size)
	var chunk pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&chunk}, func() error {
		content = append(content, chunk...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a value's chunks: %w", err)
	}
	if len(content) != size {
		return nil, fmt.Errorf("value %s has %d of %d bytes", digest, len(content), size)
	}
	return content, nil
}
