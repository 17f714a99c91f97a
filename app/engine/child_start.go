package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// refusedStep tells that what a step begins cannot begin, which is then the step's failure.
type refusedStep struct {
	stepID  string
	failure Failure
}

func (r *refusedStep) Error() string { return r.failure.Message }

func refuseStep(stepID, class, format string, args ...any) error {
	return &refusedStep{stepID, Failure{Class: class, Message: fmt.Sprintf(format, args...)}}
}

// locksFirst takes the locks that come before all others: those of an event that is sent,
// and of the tree of runs and the pipeline in which one is started.
func (d *drive) locksFirst(ctx context.Context, tx tenants.Tx, changes []change) error {
	for _, entry := range changes {
		switch c := entry.(type) {
		case sendEvent:
			key := eventKey{c.event.Name, c.event.Key}
			if _, err := tx.Exec(ctx, lockEvents, key.lock(tx.Tenant)); err != nil {
				return fmt.Errorf("lock an event's key: %w", err)
			}
		case startChild:
			batch := &tenants.Batch{}
			queueKeyLocks(batch, tx.Tenant, "tree "+d.run.rootOrSelf().String())
			if err := tx.Send(ctx, batch); err != nil {
				return fmt.Errorf("lock a tree of runs: %w", err)
			}
			if err := lockPipeline(ctx, tx, c.pipeline); err != nil {
				return err
			}
		}
	}
	return nil
}

// reachOut sends the events and starts the runs of a decision, once its rows are there.
func (d *drive) reachOut(ctx context.Context, tx tenants.Tx, changes []change) error {
	for _, entry := range changes {
		switch c := entry.(type) {
		case sendEvent:
			if _, err := d.SendEvent(ctx, tx, c.event); err != nil {
				return err
			}
		case startChild:
			if err := d.startChild(ctx, tx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// startChild starts the run that a step asks for. What keeps it from starting is a
// *refusedStep.
func (d *drive) startChild(ctx context.Context, tx tenants.Tx, c startChild) error {
	version, live, err := d.childVersion(ctx, tx, c)
	if err != nil {
		return err
	}
	if err := d.checkTree(ctx, tx, c, version, live.Name); err != nil {
		return err
	}
	record, err := expr.DecodeJSON(c.input)
	if err != nil {
		return err
	}
	input, problems := pipeline.HandOnInput(version.Document.Input, record)
	if len(problems) > 0 {
		return refuseStep(c.stepID, ClassBadInput, "The input for “%s” does not fit: %s Correct what this step hands on.", live.Name, problems[0].Message)
	}
	one := &starting{name: live.Name, version: version, StartRequest: StartRequest{
		id: c.run, Pipeline: c.pipeline, Input: input, Priority: d.slice.priority, By: d.run.StartedBy, Key: "child " + c.run.String(),
	}}
	sheet := newStartSheet(tx)
	how, err := d.mayStart(ctx, tx, sheet, one)
	var many *TooManyRuns
	if errors.As(err, &many) {
		return refuseStep(c.stepID, ClassTooMany, "%s", many.Error())
	}
	if err != nil {
		return err
	}
	if err := sheet.add(one, how); err != nil {
		return err
	}
	if err := sheet.write(ctx); err != nil {
		return err
	}
	tx.AfterCommit(d.nudge)
	if err := inheritFresh(ctx, tx, d.run.ID, one.started.Run.ID); err != nil {
		return err
	}
	return d.adopt(ctx, tx, c, one.started.Run, record)
}

// childVersion finds what is to run.
func (d *drive) childVersion(ctx context.Context, tx tenants.Tx, c startChild) (pipeline.Version, pipeline.Live, error) {
	batch := &tenants.Batch{}
	found := pipeline.QueueLive(batch, tx.Tenant, c.pipeline)
	if err := tx.Send(ctx, batch); err != nil {
		return pipeline.Version{}, *found, fmt.Errorf("look before a start: %w", err)
	}
	live := *found
	if c.version > 0 {
		live.Version = c.version
	}
	switch {
	case !live.Found:
		return pipeline.Version{}, live, refuseStep(c.stepID, ClassNoPipeline, "The pipeline that this step runs is not there any more. Choose another, and publish.")
	case live.Version == 0:
		return pipeline.Version{}, live, refuseStep(c.stepID, ClassNoPipeline, "“%s” has no published version. Publish it, and try again.", live.Name)
	}
	version, err := pipeline.VersionByNumber(ctx, tx, c.pipeline, live.Version)
	if errors.Is(err, pipeline.ErrNotFound) {
		return version, live, refuseStep(c.stepID, ClassNoPipeline, "“%s” has no version %d. Choose another.", live.Name, live.Version)
	}
	return version, live, err
}

// checkTree bounds the tree of runs that start each other.
func (d *drive) checkTree(ctx context.Context, tx tenants.Tx, c startChild, version pipeline.Version, name string) error {
	if d.run.Depth >= pipeline.MaxChildDepth {
		return refuseStep(c.stepID, ClassTooDeep, "Pipelines can start pipelines %d deep, and this run is as deep already. Do the rest in this pipeline, or start it by an event.", pipeline.MaxChildDepth)
	}
	var descendants int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant_id = $1 AND root_run = $2 LIMIT $3) tree`,
		tx.Tenant, d.run.rootOrSelf(), pipeline.MaxDescendants).Scan(&descendants)
	if err != nil {
		return fmt.Errorf("count a tree of runs: %w", err)
	}
	if descendants >= pipeline.MaxDescendants {
		return refuseStep(c.stepID, ClassTooMany, "One run can start %d runs, directly or not, and the run at the top has done so. Start fewer, or go through the list in one run.", pipeline.MaxDescendants)
	}
	if version.Document.Concurrency == nil {
		return nil
	}
	above, err := pipelinesAbove(ctx, tx, d.run.ID)
	if err != nil {
		return err
	}
	if slices.Contains(above, c.pipeline) {
		return refuseStep(c.stepID, ClassTooDeep, "“%s” bounds how many of its runs are open at once, and this run belongs to one of them: it would wait for itself. Remove the limit, or run another pipeline.", name)
	}
	return nil
}

// pipelinesAbove are the pipelines of a run and of those above it.
func pipelinesAbove(ctx context.Context, tx tenants.Tx, run RunID) ([]pipeline.ID, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE above AS (
			SELECT parent_run, pipeline_id FROM runs WHERE tenant_id = $1 AND id = $2
			UNION ALL
			SELECT r.parent_run, r.pipeline_id FROM above a JOIN runs r ON r.tenant_id = $1 AND r.id = a.parent_run
		) SELECT pipeline_id FROM above`, tx.Tenant, run)
	above, err := pgx.CollectRows(rows, pgx.RowTo[pipeline.ID])
	if err != nil {
		return nil, fmt.Errorf("look at the runs above: %w", err)
	}
	return above, nil
}

// adopt notes whose child a run is, and lets it read the files that it was handed.
func (d *drive) adopt(ctx context.Context, tx tenants.Tx, c startChild, child Run, record any) error {
	batch := &tenants.Batch{}
	batch.Guarded(`
		UPDATE runs SET parent_run = $3, parent_step_run = $4, root_run = $5, depth = $6, tells_parent = $7
		WHERE tenant_id = $1 AND id = $2 AND parent_run IS NULL RETURNING 1`,
		tx.Tenant, child.ID, d.run.ID, c.step, d.run.rootOrSelf(), d.run.Depth+1, c.waits)
	if files := digestsIn(record); len(files) > 0 {
		batch.Queue(`
			INSERT INTO run_values (tenant_id, digest, run_id) SELECT tenant_id, digest, $3 FROM run_values
			WHERE tenant_id = $1 AND run_id = $2 AND digest = ANY ($4) ON CONFLICT DO NOTHING`, tx.Tenant, d.run.ID, child.ID, files)
	}
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("note whose child a run is: %w", err)
	}
	if child.State.Final() { // its pipeline's limit has skipped it
		tx.AfterCommit(d.nudgeQueue)
	}
	return nil
}

// digestsIn are the digests of the files in a value.
func digestsIn(value any) [][]byte {
	var found [][]byte
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			found = append(found, digestsIn(entry)...)
		}
	case map[string]any:
		if text, ok := v["digest"].(string); ok {
			if digest, err := ParseDigest(text); err == nil {
				found = append(found, digest.bytes())
			}
		}
		for _, entry := range v {
			found = append(found, digestsIn(entry)...)
		}
	}
	return found
}
