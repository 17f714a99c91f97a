package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/tenants"
)

// childOf is a run whose end concerns the run that started it, or the other way round.
type childOf struct {
	Tenant tenants.ID
	Child  RunID
	Wait   WaitID // of a cascade: the wait that was cancelled
}

// FollowChildren tells waiting steps that the runs they wait for have ended, and cancels
// runs whose waiting step was cancelled, from the top of a tree downwards. Each run has a
// transaction of its own, so no two are ever locked against each other. It runs in every
// worker at each end of such a run, and twice a second; what a crash left undone it finds.
// It returns how many runs it followed.
func (e *Engine) FollowChildren(ctx context.Context) (int, error) {
	followed := 0
	for {
		told, tellTrouble := e.follow(ctx, childrenToTell, "tell of a run's end", e.tellParent)
		cancelled, cancelTrouble := e.follow(ctx, childrenToCancel, "cancel a run with the one above", e.cascade)
		followed += told + cancelled
		if err := errors.Join(tellTrouble, cancelTrouble); told+cancelled == 0 || err != nil {
			return followed, err
		}
	}
}

const (
	childrenToTell   = `SELECT tenant_id, id, NULL::uuid FROM runs WHERE tells_parent AND ended_at IS NOT NULL ORDER BY tenant_id, id LIMIT $1`
	childrenToCancel = `
		SELECT w.tenant_id, r.id, w.id FROM waits w
		LEFT JOIN LATERAL (SELECT r.id FROM runs r WHERE r.tenant_id = w.tenant_id AND r.parent_step_run = w.step_run_id ORDER BY r.id DESC LIMIT 1) r ON true
		WHERE w.kind = 'child' AND w.state = 'cancelled' ORDER BY w.tenant_id, w.id LIMIT $1`
)

// followedAtOnce is how many runs are read at a time, followLanes how many are worked on.
const (
	followedAtOnce = 1000
	followLanes    = 8
)

// follow does something to each run that a query of the system's finds.
func (e *Engine) follow(ctx context.Context, query, what string, do func(context.Context, tenants.Tx, childOf) error) (int, error) {
	var found []childOf
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, query, followedAtOnce)
		var err error
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[childOf])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] }) // others go through them, too
	lanes := make(chan childOf, len(found))
	for _, one := range found {
		lanes <- one
	}
	close(lanes)
	var mu sync.Mutex
	var group sync.WaitGroup
	followed := 0
	var failures []error
	for range min(followLanes, len(found)) {
		group.Go(func() {
			for one := range lanes {
				n, err := each([]childOf{one}, what, func(one childOf) error {
					return e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error { return do(ctx, tx, one) })
				})
				mu.Lock()
				followed += n
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return followed, errors.Join(failures...)
}

// tellParent wakes the step that waits for a run which has ended. Its run may have ended
// meanwhile, or be gone on: then there is nobody to tell.
func (e *Engine) tellParent(ctx context.Context, tx tenants.Tx, one childOf) error {
	tag, err := tx.Exec(ctx, `
		UPDATE runs SET tells_parent = false WHERE tenant_id = $1 AND id = $2 AND tells_parent AND ended_at IS NOT NULL`, tx.Tenant, one.Child)
	if err != nil {
		return fmt.Errorf("note that a run's end was told: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errStale
	}
	child, err := RunByID(ctx, tx, one.Child)
	if err != nil {
		return err
	}
	woken, err := childOutcome(ctx, tx, child)
	if err != nil {
		return err
	}
	if err := e.wake(ctx, tx, woken); !errors.Is(err, ErrNotWaiting) {
		return err
	}
	return nil
}

// tellAgain wakes a step that waits for a run which is over, or is not there.
func (e *Engine) tellAgain(ctx context.Context, tx tenants.Tx, step StepRunID) error {
	child, err := oneRun(ctx, tx, `r.tenant_id = $1 AND r.parent_step_run = $2 ORDER BY r.id DESC LIMIT 1`, tx.Tenant, step)
	if errors.Is(err, ErrNoRun) {
		return e.wake(ctx, tx, waking{step: step, state: "done", failure: &Failure{Class: ClassInternal,
			Message: "The run that this step waited for is not there. This is a defect of Tollgate's; start the run again."}})
	}
	if err != nil {
		return err
	}
	if !child.State.Final() {
		return errStale
	}
	woken, err := childOutcome(ctx, tx, child)
	if err != nil {
		return err
	}
	return e.wake(ctx, tx, woken)
}

// childOutcome is what a run that has ended means for the step that started it.
func childOutcome(ctx context.Context, tx tenants.Tx, child Run) (waking, error) {
	w := waking{step: child.ParentStep, state: "done"}
	switch child.State {
	case RunCompleted:
		output, err := childOutput(ctx, tx, child)
		w.output = output
		if err == nil && len(output) > MaxValue {
			w.output, w.failure = nil, &Failure{Class: ClassTooLarge, Message: "The result of the run that this step waited for is larger than 32 MiB. Let it hand back less."}
		}
		return w, err
	case RunFailed:
		w.failure = &Failure{Class: ClassInternal, Message: "The run failed."}
		if child.Failure != nil {
			failed := *child.Failure
			failed.StepID = "" // a step of the other pipeline
			failed.Message = fmt.Sprintf("Run #%d of “%s” failed: %s", child.Number, child.PipelineName, failed.Message)
			w.failure = &failed
		}
		return w, nil
	}
	message := fmt.Sprintf("Run #%d of “%s” was cancelled.", child.Number, child.PipelineName)
	if child.EndedBy != "" {
		message = fmt.Sprintf("Run #%d of “%s” was cancelled by %s.", child.Number, child.PipelineName, child.EndedBy)
	}
	w.failure = &Failure{Class: ClassChildCancelled, Message: message}
	if child.Failure != nil {
		w.failure.Detail = child.Failure.Message
	}
	return w, nil
}

func childOutput(ctx context.Context, tx tenants.Tx, child Run) ([]byte, error) {
	out := map[string]any{"run": child.ID.String(), "result": nil}
	if !child.Result.IsZero() {
		content, err := Value(ctx, tx, child.Result)
		if err != nil {
			return nil, fmt.Errorf("read a run's result: %w", err)
		}
		if out["result"], err = expr.DecodeJSON(content.Bytes); err != nil {
			return nil, err
		}
	}
	return expr.EncodeJSON(out)
}

// cascade cancels a run whose waiting step was cancelled. Its own steps that wait for runs
// are cancelled with it, which the next look finds.
func (e *Engine) cascade(ctx context.Context, tx tenants.Tx, one childOf) error {
	if !one.Child.IsZero() {
		err := e.Cancel(ctx, tx, one.Child, cascadedBy)
		if err != nil && !errors.Is(err, ErrEnded) {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE runs SET tells_parent = false WHERE tenant_id = $1 AND id = $2 AND tells_parent`, tx.Tenant, one.Child); err != nil {
			return fmt.Errorf("note that nobody waits for a run: %w", err)
		}
	}
	tag, err := tx.Exec(ctx, `UPDATE waits SET state = 'cascaded' WHERE tenant_id = $1 AND id = $2 AND state = 'cancelled'`, tx.Tenant, one.Wait)
	if err != nil {
		return fmt.Errorf("note that a cancel was passed on: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errStale
	}
	return nil
}

// cascadedBy is shown as who ended a run that was cancelled with the one above.
const cascadedBy = "the run that started it"
