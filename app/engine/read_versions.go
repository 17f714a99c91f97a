package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// OpenRuns counts the open runs of one version of a pipeline by how they stand, each
// once, under the first that fits.
type OpenRuns struct {
	Version int
	Queued  int // the pipeline takes no more at once
	Paused  int // or about to be
	Capped  int // stopped by the cap
	Person  int // wait for a person
	Waiting int // wait for something else
	Working int // everything else
}

// All is how many there are.
func (o OpenRuns) All() int {
	return o.Queued + o.Paused + o.Capped + o.Person + o.Waiting + o.Working
}

const waitsOpen = `SELECT 1 FROM waits w WHERE w.tenant_id = r.tenant_id AND w.run_id = r.id AND w.state = 'open'`

// OpenByVersion counts a pipeline's open runs by version, the newest version first. Of
// very many open runs the newest MaxCounted are counted; cut tells that there are more.
func OpenByVersion(ctx context.Context, tx tenants.Tx, of pipeline.ID) (counts []OpenRuns, cut bool, err error) {
	rows, _ := tx.Query(ctx, `
		SELECT o.version, count(*) FILTER (WHERE o.stands = 'queued'), count(*) FILTER (WHERE o.stands = 'paused'),
			count(*) FILTER (WHERE o.stands = 'cap'), count(*) FILTER (WHERE o.stands = 'review'),
			count(*) FILTER (WHERE o.stands = 'wait'), count(*) FILTER (WHERE o.stands = 'work')
		FROM (
			SELECT r.version, CASE
				WHEN r.state = 'queued' THEN 'queued' WHEN r.state IN ('pausing', 'paused') THEN 'paused'
				WHEN EXISTS (`+waitsOpen+` AND w.kind = 'cap') THEN 'cap' WHEN EXISTS (`+waitsOpen+` AND w.kind = 'review') THEN 'review'
				WHEN EXISTS (`+waitsOpen+`) THEN 'wait' ELSE 'work' END AS stands
			FROM runs r WHERE r.tenant_id = $1 AND r.pipeline_id = $2 AND r.ended_at IS NULL ORDER BY r.id DESC LIMIT $3
		) o GROUP BY o.version ORDER BY o.version DESC`, tx.Tenant, of, MaxCounted)
	counts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[OpenRuns])
	if err != nil {
		return nil, false, fmt.Errorf("count open runs by version: %w", err)
	}
	all := 0
	for _, one := range counts {
		all += one.All()
	}
	return counts, all == MaxCounted, nil
}

// RunMove tells that a run was moved to another version of its pipeline.
type RunMove struct {
	At       time.Time
	From, To int
	By       string // who did it
}

// Versions are the version that new runs take beside those that a run was on.
type Versions struct {
	Live  int
	Moves []RunMove // the oldest first
}

// VersionsOf reads them for a run.
func VersionsOf(ctx context.Context, tx tenants.Tx, run Run) (Versions, error) {
	var v Versions
	batch := &tenants.Batch{}
	live := pipeline.QueueLive(batch, tx.Tenant, run.PipelineID)
	batch.Queue(`
		SELECT m.moved_at, m.from_version, m.to_version, coalesce(u.name, '') FROM run_moves m LEFT JOIN users u ON u.id = m.moved_by
		WHERE m.tenant_id = $1 AND m.run_id = $2 ORDER BY m.id`, tx.Tenant, run.ID).Query(func(rows pgx.Rows) error {
		var err error
		v.Moves, err = pgx.CollectRows(rows, pgx.RowToStructByPos[RunMove])
		return err
	})
	if err := tx.Send(ctx, batch); err != nil {
		return v, fmt.Errorf("read the versions of a run: %w", err)
	}
	v.Live = live.Version
	return v, nil
}

// at is the version that the run was on at a time.
func (v Versions) at(run Run, then time.Time) int {
	for _, move := range v.Moves {
		if then.Before(move.At) {
			return move.From
		}
	}
	return run.Version
}
