package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// bulkOf names a bulk across tenants.
type bulkOf struct {
	Tenant tenants.ID
	ID     BulkID
}

// bulkTurn is how long one look at a bulk goes on before the next one gets its turn.
const bulkTurn = 3 * time.Second

// RunBulks goes on with all bulks that are open, and returns to how many runs it did
// something. It runs in every worker; each run is taken by one of them, and what is done
// to it and that it is done are one transaction. Whatever a crash left undone it finds.
func (e *Engine) RunBulks(ctx context.Context) (int, error) {
	var open []bulkOf
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT tenant_id, id FROM bulk_jobs WHERE state = 'running' ORDER BY tenant_id, id LIMIT 100`)
		var err error
		open, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bulkOf])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for open bulks: %w", err)
	}
	did := 0
	_, err = each(open, "go on with a bulk", func(one bulkOf) error {
		until := time.Now().Add(bulkTurn)
		for time.Now().Before(until) && ctx.Err() == nil {
			more, err := e.bulkStep(ctx, one)
			if err != nil || !more {
				return err
			}
			did++
		}
		return nil
	})
	return did, err
}

// bulkStep does it to one run. Where it does not fit any more, that is written down
// instead. It reports false where there is no run left to take.
func (e *Engine) bulkStep(ctx context.Context, one bulkOf) (bool, error) {
	var bulk Bulk
	var run RunID
	err := e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if bulk, run, err = takeFromBulk(ctx, tx, one.ID); err != nil || run.IsZero() {
			return err
		}
		made, err := e.doOne(ctx, tx, bulk, run)
		if err != nil {
			return err
		}
		return noteOne(ctx, tx, bulk.ID, run, "done", "", made)
	})
	words := refusedWords(err)
	var full *TooManyRuns
	switch {
	case errors.As(err, &full):
		return false, nil // it goes on once some runs have ended
	case words != "":
		if words == ourFault {
			e.Log.Error("a run of a bulk was passed over", slog.String("run", run.String()), slog.String("error", err.Error()))
		}
		return true, e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
			return noteOne(ctx, tx, bulk.ID, run, "refused", words, RunID{})
		})
	case err != nil || !run.IsZero():
		return err == nil, err
	}
	return false, e.endBulk(ctx, one)
}

// takeFromBulk takes the next run of a bulk that nobody else is at; none is zero.
func takeFromBulk(ctx context.Context, tx tenants.Tx, id BulkID) (Bulk, RunID, error) {
	bulk, run := Bulk{ID: id}, RunID{}
	err := tx.QueryRow(ctx, `
		SELECT b.action, b.by_user, b.by_name, i.run_id FROM bulk_jobs b JOIN bulk_runs i ON i.tenant_id = b.tenant_id AND i.job_id = b.id
		WHERE b.tenant_id = $1 AND b.id = $2 AND b.state = 'running' AND i.state = 'pending'
		ORDER BY i.run_id LIMIT 1 FOR UPDATE OF i SKIP LOCKED`, tx.Tenant, id).Scan(&bulk.Action, &bulk.ByUser, &bulk.ByName, &run)
	if errors.Is(err, pgx.ErrNoRows) {
		return bulk, RunID{}, nil
	}
	if err != nil {
		return bulk, run, fmt.Errorf("take a run of a bulk: %w", err)
	}
	return bulk, run, nil
}

// doOne does it to one run, and notes who had it done. made is a run that came of it.
func (e *Engine) doOne(ctx context.Context, tx tenants.Tx, bulk Bulk, run RunID) (made RunID, err error) {
	hand := Hand{
		By:  tenants.Actor{Kind: tenants.ActorMember, ID: bulk.ByUser, Name: bulk.ByName},
		Key: "bulk:" + bulk.ID.String() + ":" + run.String(),
	}
	detail := map[string]any{"bulk": bulk.ID.String()}
	switch bulk.Action {
	case BulkRetry:
		return made, e.Retry(ctx, tx, run, "", hand)
	case BulkRerun:
		return e.rerunAll(ctx, tx, run, bulk.ByUser, hand)
	case BulkCancel:
		if err := e.Cancel(ctx, tx, run, bulk.ByName); err != nil {
			return made, err
		}
		return made, hand.note(ctx, tx, run, "run.cancelled", detail)
	case BulkPause:
		if err := e.Pause(ctx, tx, run); err != nil {
			return made, err
		}
		return made, hand.note(ctx, tx, run, "run.paused", detail)
	case BulkResume:
		if err := e.Resume(ctx, tx, run); err != nil {
			return made, err
		}
		return made, hand.note(ctx, tx, run, "run.resumed", detail)
	}
	return made, fmt.Errorf("a bulk has the unknown action %q", bulk.Action)
}

// rerunAll does a run again from its first step.
func (e *Engine) rerunAll(ctx context.Context, tx tenants.Tx, id RunID, by tenants.UserID, hand Hand) (RunID, error) {
	run, err := RunByID(ctx, tx, id)
	if err != nil {
		return RunID{}, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, run.Version)
	if err != nil {
		return RunID{}, err
	}
	made, err := e.Rerun(ctx, tx, RerunRequest{Run: id, From: version.Program.Roots()[0].ID()}, by, "", hand)
	return made.ID, err
}

// noteOne writes down what became of a run of a bulk.
func noteOne(ctx context.Context, tx tenants.Tx, bulk BulkID, run RunID, state, words string, made RunID) error {
	_, err := tx.Exec(ctx, `
		UPDATE bulk_runs SET state = $4, words = $5, new_run = $6, done_at = now()
		WHERE tenant_id = $1 AND job_id = $2 AND run_id = $3 AND state = 'pending'`, tx.Tenant, bulk, run, state, words, made)
	if err != nil {
		return fmt.Errorf("note what became of a run of a bulk: %w", err)
	}
	return nil
}

// refusedWords say why something does not fit a run; empty where it may be tried again. A
// run that fails for a reason of ours must not hold up the others.
func refusedWords(err error) string {
	var never *NotRetryable
	if errors.As(err, &never) {
		return never.Why
	}
	for _, known := range refusals {
		if errors.Is(err, known.err) {
			return known.words
		}
	}
	if err == nil || tenants.IsTrouble(err) || tenants.IsLostRace(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	return ourFault
}

const ourFault = "It could not be done, for a reason that lies in Tollgate itself."

var refusals = []struct {
	err   error
	words string
}{
	{ErrNotFailed, "It had not failed any more."}, {ErrEnded, "It had ended by then."}, {ErrNotRunning, "It was not running by then."},
	{ErrNotPaused, "It was not paused any more."}, {ErrNoRoom, "Its pipeline takes no more runs at once."}, {ErrMoved, "It changed meanwhile."},
}

// endBulk ends a bulk of which no run is left, and writes down what came of it.
func (e *Engine) endBulk(ctx context.Context, one bulkOf) error {
	return e.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE bulk_jobs b SET state = 'done', ended_at = now() WHERE b.tenant_id = $1 AND b.id = $2 AND b.state = 'running'
				AND NOT EXISTS (SELECT 1 FROM bulk_runs i WHERE i.tenant_id = $1 AND i.job_id = $2 AND i.state = 'pending')`, one.Tenant, one.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		bulk, err := BulkByID(ctx, tx, one.ID)
		if err != nil {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.BySystem("the bulk of " + bulk.ByName), Action: "bulk.done", Target: tenants.Target{Kind: "bulk", ID: one.ID},
			Detail: map[string]any{"done": bulk.Done, "refused": bulk.Refused},
		})
	})
}
