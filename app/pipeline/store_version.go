package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// KnownVersion is a published version that this process has read before.
func KnownVersion(tenant tenants.ID, id ID, number int) (Version, bool) {
	return versions.get(versionKey{tenant, id, number})
}

// VersionByNumber reads a published version, ready to run.
func VersionByNumber(ctx context.Context, tx tenants.Tx, id ID, number int) (Version, error) {
	key := versionKey{tx.Tenant, id, number}
	if version, ok := versions.get(key); ok {
		return version, nil
	}
	version := Version{Pipeline: id, Number: number}
	var text string
	err := tx.QueryRow(ctx, `
		SELECT document, note, published_by, published_at FROM pipeline_versions
		WHERE tenant_id = $1 AND pipeline_id = $2 AND number = $3`, tx.Tenant, id, number).
		Scan(&text, &version.Note, &version.PublishedBy, &version.PublishedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return version, ErrNotFound
	}
	if err != nil {
		return version, fmt.Errorf("read a version: %w", err)
	}
	if version.Document, err = Parse([]byte(text)); err != nil {
		return version, fmt.Errorf("parse version %d: %w", number, err)
	}
	if version.Program, err = compile(version.Document); err != nil {
		return version, fmt.Errorf("compile version %d: %w", number, err)
	}
	// A version that this very transaction published may yet be rolled back, and its
	// number given to another.
	if version.PublishedAt.Before(tx.Now) {
		versions.put(key, version)
	}
	return version, nil
}

type versionKey struct {
	tenant   tenants.ID
	pipeline ID
	number   int
}

// maxCached bounds how many compiled versions a process keeps.
const maxCached = 256

// versionCache keeps compiled versions. A version never changes, so nothing in it can
// go stale; when it is full any one makes room.
type versionCache struct {
	mu     sync.Mutex
	cached map[versionKey]Version
}

var versions = versionCache{cached: map[versionKey]Version{}}

func (c *versionCache) get(key versionKey) (Version, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, ok := c.cached[key]
	return version, ok
}

func (c *versionCache) put(key versionKey, version Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cached) >= maxCached {
		for other := range c.cached {
			delete(c.cached, other)
			break
		}
	}
	c.cached[key] = version
}
