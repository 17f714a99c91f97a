package engine

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// eventWaits are the waits for events that a transaction opens. It takes their locks
// before all others, and once the waits are there gives them what was sent before.
type eventWaits struct {
	steps []StepRunID
	locks []int64
	alike map[alikeWaits]int // how many waits of a run are for the same event
	most  int                // the largest of those
}

type alikeWaits struct {
	run RunID
	key eventKey
}

// add notes a wait, if it is for an event.
func (w *eventWaits) add(tenant tenants.ID, run RunID, wait Wait) {
	if wait.Kind != WaitEvent {
		return
	}
	if w.alike == nil {
		w.alike = map[alikeWaits]int{}
	}
	key := eventKey{wait.EventName, wait.EventKey}
	w.steps = append(w.steps, wait.StepRun)
	w.locks = append(w.locks, key.lock(tenant))
	w.alike[alikeWaits{run, key}]++
	w.most = max(w.most, w.alike[alikeWaits{run, key}])
}

// any tells whether the transaction opens any.
func (w *eventWaits) any() bool { return len(w.steps) > 0 }

// queueLocks takes the locks in their order. It must come first.
func (w *eventWaits) queueLocks(b *tenants.Batch) {
	if !w.any() {
		return
	}
	slices.Sort(w.locks)
	b.Queue(`SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) WITH ORDINALITY AS locks (key, place) ORDER BY place`, w.locks)
}

// queueTakes serves the waits, each round one of those that a run has for the same
// event. Whoever commits it nudges the pump then.
func (w *eventWaits) queueTakes(b *tenants.Batch, tenant tenants.ID) {
	for range w.most {
		b.Queue(takeBySteps, tenant, newIDs[slice](len(w.steps)), len(w.steps), w.steps)
	}
}

// awaitsEvent tells whether the decision opens a wait for an event.
func (d decision) awaitsEvent() bool {
	return slices.ContainsFunc(d.changes, func(entry change) bool {
		open, ok := entry.(openWait)
		return ok && open.wait.Kind == WaitEvent
	})
}

// expireEvent ends a wait for an event whose time is up, as its step says. What was
// sent in time counts, even where it became visible after the deadline.
func (e *Engine) expireEvent(ctx context.Context, tx tenants.Tx, due dueWait) error {
	key := eventKey{due.EventName, due.EventKey}
	if _, err := tx.Exec(ctx, lockEvents, key.lock(tx.Tenant)); err != nil {
		return fmt.Errorf("lock an event's key: %w", err)
	}
	if served, err := e.takeForStep(ctx, tx, due.Step); served || err != nil {
		return err
	}
	node, err := nodeOf(ctx, tx, due.Step)
	if err != nil {
		return err
	}
	w := waking{step: due.Step, state: "expired"}
	if waits := node.Event(); waits != nil && waits.OnDeadline == pipeline.DeadlineContinue {
		w.output = []byte(`{"outcome":"` + pipeline.EventTimeout + `","data":null}`)
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
