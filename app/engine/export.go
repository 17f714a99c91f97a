package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// StepRunsAfter reads step runs of a run in the order of their ids, for who takes a whole
// run away in parts.
func StepRunsAfter(ctx context.Context, tx tenants.Tx, run RunID, after StepRunID, limit int) ([]StepRun, error) {
	return stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND ($3::uuid IS NULL OR id > $3) ORDER BY id LIMIT $4`, tx.Tenant, run, after, limit)
}

// Kept is a value that a run refers to.
type Kept struct {
	Digest    Digest
	MediaType string
	Size      int64 // in bytes
}

// KeptAfter lists values that a run refers to in the order of their digests.
func KeptAfter(ctx context.Context, tx tenants.Tx, run RunID, after Digest, limit int) ([]Kept, error) {
	rows, _ := tx.Query(ctx, `
		SELECT v.digest, v.media_type, v.size FROM run_values r JOIN stored_values v ON v.tenant_id = r.tenant_id AND v.digest = r.digest
		WHERE r.tenant_id = $1 AND r.run_id = $2 AND ($3::bytea IS NULL OR r.digest > $3) ORDER BY r.digest LIMIT $4`, tx.Tenant, run, after.bytes(), limit)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Kept, error) {
		var one Kept
		var digest []byte
		err := row.Scan(&digest, &one.MediaType, &one.Size)
		one.Digest = digestFrom(digest)
		return one, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the values of a run: %w", err)
	}
	return found, nil
}

// ProgramOf reads a run and what it runs, without its steps. It returns ErrNoRun.
func ProgramOf(ctx context.Context, tx tenants.Tx, id RunID) (View, error) {
	var v View
	var err error
	if v.Run, err = RunByID(ctx, tx, id); err != nil {
		return v, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, v.Run.PipelineID, v.Run.Version)
	v.Program = version.Program
	return v, err
}
