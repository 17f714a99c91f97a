package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// VersionLine is a published version as lists show it.
type VersionLine struct {
	Number      int
	Note        string
	PublishedBy string // name; empty where nobody is known
	PublishedAt time.Time
}

// maxVersionLines bounds a list of versions.
const maxVersionLines = 50

// VersionLines lists the newest versions of a pipeline, and those that are asked for
// besides, the newest first.
func VersionLines(ctx context.Context, tx tenants.Tx, id ID, besides []int) ([]VersionLine, error) {
	rows, _ := tx.Query(ctx, `
		SELECT v.number, v.note, coalesce(u.name, ''), v.published_at FROM pipeline_versions v LEFT JOIN users u ON u.id = v.published_by
		WHERE v.tenant_id = $1 AND v.pipeline_id = $2 AND (v.number = ANY ($3) OR v.number IN (
			SELECT n.number FROM pipeline_versions n WHERE n.tenant_id = $1 AND n.pipeline_id = $2 ORDER BY n.number DESC LIMIT $4))
		ORDER BY v.number DESC`, tx.Tenant, id, besides, maxVersionLines)
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[VersionLine])
	if err != nil {
		return nil, fmt.Errorf("list versions: %w", err)
	}
	return lines, nil
}

// Named is a pipeline as choices show it.
type Named struct {
	ID   ID
	Name string
	Live int // the version that new runs take; 0 before the first is published
}

// Names lists all pipelines of the tenant, by name.
func Names(ctx context.Context, tx tenants.Tx) ([]Named, error) {
	rows, _ := tx.Query(ctx, `SELECT id, name, coalesce(live_version, 0) FROM pipelines WHERE tenant_id = $1 ORDER BY name, id`, tx.Tenant)
	names, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Named])
	if err != nil {
		return nil, fmt.Errorf("list the names of pipelines: %w", err)
	}
	return names, nil
}

// mostSearchFields bounds how many fields are offered to find runs by.
const mostSearchFields = 40

// SearchFieldsOf lists what the runs of the live versions of some pipelines are found by,
// each field once.
func SearchFieldsOf(ctx context.Context, tx tenants.Tx, of []Named) ([]SearchField, error) {
	var fields []SearchField
	known := map[string]bool{}
	for _, one := range of {
		if one.Live == 0 {
			continue
		}
		version, err := VersionByNumber(ctx, tx, one.ID, one.Live)
		if err != nil {
			return nil, err
		}
		for _, field := range version.Document.SearchFields() {
			if !known[field.Name] && len(fields) < mostSearchFields {
				known[field.Name] = true
				fields = append(fields, field)
			}
		}
	}
	return fields, nil
}
