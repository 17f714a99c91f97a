package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// claimed is what a claim reads in its one round trip.
type claimed struct {
	slice slice
	run   Run
	input Content // of the run; of a large one only the kind
	size  int
	open  []StepRun // the slice's own open step run, if it has one
	stood []StepRun // the step run that the slice's row names, if it names one
}

// hasInput tells whether the run's input came with the claim.
func (c *claimed) hasInput() bool { return c.input.MediaType != "" && len(c.input.Bytes) == c.size }

// position is where the slice stands, nil at the run's beginning. An open step run that
// belongs to the slice is the position even if the slice's row still names an earlier one.
func (c *claimed) position() *StepRun {
	for _, rows := range [][]StepRun{c.open, c.stood} {
		if len(rows) > 0 {
			return &rows[0]
		}
	}
	return nil
}

// claim takes the slice and reads where it stands; at the beginning of a run of a known
// version that is one round trip. A slice that comes too late to its group goes to the
// list around, or ends.
func (d *drive) claim(ctx context.Context, args DriveSlice) error {
	var first claimed
	batch := &tenants.Batch{ByKey: true}
	queueClaim(batch, d.tenant, args, d.job.ID(), d.worker.ID, &first.slice)
	first.queueReads(batch, d.tenant, args.Slice)
	if err := d.DB.Send(ctx, d.tenant, batch); err != nil {
		return fmt.Errorf("claim a slice: %w", err)
	}
	d.slice, d.run, d.step = first.slice, first.run, first.position()
	version, known := pipeline.KnownVersion(d.tenant, d.run.PipelineID, d.run.Version)
	if d.step == nil && known && first.hasInput() {
		d.outcome.kind = entered
		return d.understand(version.Program, first.input)
	}
	return d.readOn(ctx, &first)
}

// readOn reads what the claim could not know that it needs.
func (d *drive) readOn(ctx context.Context, first *claimed) error {
	found := stays
	err := d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		d.step = first.position()
		if err := d.loadProgram(ctx, tx, first); err != nil {
			return err
		}
		if err := d.loadPosition(ctx, tx); err != nil {
			return err
		}
		late, err := d.late(ctx, tx)
		if found = stays; late && err == nil {
			found, err = d.leaveLate(ctx, tx)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case found == leaves:
		return errEnded
	case found == movesUp:
		d.moveUp()
	}
	return nil
}

// queueClaim takes a slice for a worker. The same job may claim again after a try of it
// broke off, since River runs a job once at a time; any other is stale. The commit need
// not wait for the disk: should a crash undo it, it undoes all that was built on it.
func queueClaim(b *tenants.Batch, tenant tenants.ID, args DriveSlice, jobID int64, worker WorkerID, s *slice) {
	b.Queue(`
		UPDATE slices SET state = 'running', worker_id = $5, claimed_at = now(), job_id = $4
		WHERE tenant_id = $1 AND id = $2 AND fence = $3 AND (`+stateByKey+` = 'dispatched' OR job_id = $4)
		RETURNING run_id, step_run_id, wait_id, window_id, semantics, priority, set_config('synchronous_commit', 'off', true)`,
		tenant, args.Slice, args.Fence, jobID, worker).QueryRow(func(row pgx.Row) error {
		*s = slice{id: args.Slice, fence: args.Fence}
		err := row.Scan(&s.run, &s.step, &s.wait, &s.window, &s.semantics, &s.priority, nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return errStale
		}
		return err
	})
}

// queueReads reads what almost every slice needs first.
func (c *claimed) queueReads(b *tenants.Batch, tenant tenants.ID, id SliceID) {
	const owner = `(SELECT s.run_id FROM slices s WHERE s.tenant_id = $1 AND s.id = $2)`
	b.Queue(runQuery+`r.tenant_id = $1 AND r.id = `+owner, tenant, id).Query(func(rows pgx.Rows) (err error) {
		c.run, err = pgx.CollectExactlyOneRow(rows, scanRun)
		return err
	})
	b.Queue(`
		SELECT v.size, v.media_type, v.content FROM runs r JOIN stored_values v ON v.tenant_id = r.tenant_id AND v.digest = r.input_digest
		WHERE r.tenant_id = $1 AND r.id = `+owner, tenant, id).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&c.size, &c.input.MediaType, &c.input.Bytes)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // whoever reads on will say that it is missing
		}
		return err
	})
	into := func(found *[]StepRun) func(pgx.Rows) error {
		return func(rows pgx.Rows) (err error) {
			*found, err = pgx.CollectRows(rows, scanStepRun)
			return err
		}
	}
	b.Queue(stepRunQuery+`slice_id = $2 AND tenant_id = $1 AND state IN ('running', 'waiting')`, tenant, id).Query(into(&c.open))
	b.Queue(stepRunQuery+`tenant_id = $1 AND id = (SELECT s.step_run_id FROM slices s WHERE s.tenant_id = $1 AND s.id = $2)`, tenant, id).Query(into(&c.stood))
}
