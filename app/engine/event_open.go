package engine

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// queueEventLocks takes the locks of the events that a commit begins to wait for, in
// order.
func (c *commitment) queueEventLocks(b *tenants.Batch) {
	var locks []int64
	for _, entry := range c.changes {
		if open, ok := entry.(openWait); ok && open.wait.Kind == WaitEvent {
			locks = append(locks, eventKey{open.wait.EventName, open.wait.EventKey}.lock(c.tenant))
		}
	}
	if len(locks) == 0 {
		return
	}
	slices.Sort(locks)
	b.Queue(`SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) WITH ORDINALITY AS locks (key, place) ORDER BY place`, locks)
}

// openEvents gives the event waits that a commit opened what was sent before.
func (d *drive) openEvents(ctx context.Context, tx tenants.Tx, changes []change) error {
	for _, entry := range changes {
		open, ok := entry.(openWait)
		if !ok || open.wait.Kind != WaitEvent {
			continue
		}
		key := eventKey{open.wait.EventName, open.wait.EventKey}
		if _, err := d.takeEvents(ctx, tx, key, open.wait.StepRun, 1); err != nil {
			return err
		}
	}
	return nil
}

// expireEvent ends a wait for an event whose time is up, as its step says. What was
// sent in time counts, even where it became visible after the deadline.
func (e *Engine) expireEvent(ctx context.Context, tx tenants.Tx, due dueWait) error {
	key := eventKey{due.EventName, due.EventKey}
	if err := lockEvents(ctx, tx, key); err != nil {
		return err
	}
	if served, err := e.takeEvents(ctx, tx, key, due.Step, 1); served > 0 || err != nil {
		return err
	}
	node, err := nodeOf(ctx, tx, due.Step)
	if err != nil {
		return err
	}
	w := waking{step: due.Step, state: "expired"}
	if waits, ok := node.Step.With.(*pipeline.Event); ok && waits.OnDeadline == pipeline.DeadlineContinue {
		w.output = []byte(`{"outcome":"timeout","data":null}`)
	} else {
		w.failure = &Failure{Class: ClassExpired, Message: key.words() + " did not come before the deadline."}
	}
	return e.wake(ctx, tx, w)
}

// words names the event at the beginning of a sentence.
func (k eventKey) words() string {
	if k.key == "" {
		return "The event “" + k.name + "”"
	}
	return "The event “" + k.name + "” with the key “" + k.key + "”"
}

// nodeOf finds the step that a step run executes.
func nodeOf(ctx context.Context, tx tenants.Tx, step StepRunID) (*pipeline.Node, error) {
	var run Run
	var stepID string
	err := tx.QueryRow(ctx, `
		SELECT r.pipeline_id, r.version, s.step_id FROM step_runs s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		WHERE s.tenant_id = $1 AND s.id = $2`, tx.Tenant, step).Scan(&run.PipelineID, &run.Version, &stepID)
	if err != nil {
		return nil, fmt.Errorf("find the step of a step run: %w", err)
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, run.Version)
	if err != nil {
		return nil, err
	}
	return version.Program.Node(stepID), nil
}
