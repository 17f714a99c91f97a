package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// BulkAction is what can be done to many runs at once.
type BulkAction string

// The actions, equal to the list in the table's check.
const (
	BulkRetry  BulkAction = "retry"  // the failed step tried again
	BulkCancel BulkAction = "cancel" // stopped for good
	BulkPause  BulkAction = "pause"
	BulkResume BulkAction = "resume"
	BulkRerun  BulkAction = "rerun" // done again from the start, each as a new run
)

// BulkID identifies something that is done to many runs.
type BulkID = tenants.IDOf[Bulk]

// Bulk is something that is done to many runs, one after the other.
type Bulk struct {
	ID        BulkID
	Action    BulkAction
	Filter    Filter
	State     string // running, done, stopped
	Total     int
	ByUser    tenants.UserID
	ByName    string
	CreatedAt time.Time
	EndedAt   *time.Time
	Done      int // runs to which it was done
	Refused   int // runs that it did not fit any more
	Left      int // runs that it was stopped before
}

// MostInBulk bounds how many runs one bulk takes; the rest is left for another.
const MostInBulk = 10_000

// ErrNoBulk tells that the tenant has no such bulk. ErrBulkEnded tells that there is
// nothing left of it to stop.
var (
	ErrNoBulk    = errors.New("no such bulk")
	ErrBulkEnded = errors.New("the bulk has ended already")
)

// BadBulk tells what is wrong with what was asked for.
type BadBulk struct{ Reason string } // a sentence for people

func (e *BadBulk) Error() string { return e.Reason }

// BulkPlan is what happens when something is done to all runs of a filter.
type BulkPlan struct {
	Action BulkAction
	Filter Filter
	Mark   Mark
	Runs   int          // that fit, MostInBulk at most
	More   bool         // there are more than are taken
	Causes []CauseCount // why they failed, the most frequent first
	// CostMicros is what the runs have cost together, where they are to be done again.
	CostMicros int64
}

// CauseCount is how many runs failed for one reason.
type CauseCount struct {
	Class, Message string
	Runs           int
}

// bulkActions are the standings in which each action changes a run.
var bulkActions = map[BulkAction]string{
	BulkRetry: "r.state = 'failed'", BulkCancel: "r.ended_at IS NULL", BulkPause: "r.state = 'running'",
	BulkResume: "r.state IN ('pausing', 'paused')", BulkRerun: "r.ended_at IS NOT NULL",
}

// fitsAction is the condition for the runs r of a filter that an action fits.
func fitsAction(tx tenants.Tx, action BulkAction, filter Filter) (choice, error) {
	fits, known := bulkActions[action]
	if !known || !filter.Group.Known() {
		return choice{}, &BadBulk{"Choose what is to be done, and to which runs."}
	}
	c, err := filter.chooseAll(tx)
	c.texts = append(c.texts, fits)
	return c, err
}

// PlanBulk says what doing something to all runs of a filter means. It returns *BadBulk
// for an action or a group that there is not.
func PlanBulk(ctx context.Context, tx tenants.Tx, action BulkAction, filter Filter) (BulkPlan, error) {
	plan := BulkPlan{Action: action, Filter: filter}
	c, err := fitsAction(tx, action, filter)
	if err != nil {
		return plan, err
	}
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM runs r WHERE %s LIMIT %d) fit`, c.where(), MostInBulk+1), c.args...).Scan(&plan.Runs)
	if err != nil {
		return plan, fmt.Errorf("count the runs of a bulk: %w", err)
	}
	if plan.More = plan.Runs > MostInBulk; plan.More {
		plan.Runs = MostInBulk
	}
	plan.Mark = Mark(fmt.Sprintf("%d runs", plan.Runs))
	if action == BulkRerun {
		if plan.CostMicros, err = costOf(ctx, tx, c); err != nil {
			return plan, err
		}
	}
	rows, _ := tx.Query(ctx, `
		SELECT coalesce(r.failure ->> 'class', ''), coalesce(r.failure ->> 'message', ''), count(*)::int FROM runs r
		WHERE r.failure IS NOT NULL AND `+c.where()+` GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 10`, c.args...)
	plan.Causes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[CauseCount])
	if err != nil {
		return plan, fmt.Errorf("count why runs failed: %w", err)
	}
	return plan, nil
}

// StartBulk begins to do something to all runs that fit a filter now. Working processes do
// it in the background, run by run. A form that is sent again leads to what it began. It
// returns ErrMoved where other runs fit than seen says, and *BadBulk where none does.
func (e *Engine) StartBulk(ctx context.Context, tx tenants.Tx, action BulkAction, filter Filter, by tenants.Membership, seen Mark, key string) (BulkID, error) {
	lock := &tenants.Batch{}
	queueKeyLocks(lock, tx.Tenant, key)
	if err := tx.Send(ctx, lock); err != nil {
		return BulkID{}, fmt.Errorf("wait for a form that was sent twice: %w", err)
	}
	var id BulkID
	err := tx.QueryRow(ctx, `SELECT id FROM bulk_jobs WHERE tenant_id = $1 AND form_key = $2`, tx.Tenant, key).Scan(&id)
	if err == nil || !errors.Is(err, pgx.ErrNoRows) {
		return id, err
	}
	plan, err := PlanBulk(ctx, tx, action, filter)
	switch {
	case err != nil:
		return id, err
	case seen != "" && seen != plan.Mark:
		return id, ErrMoved
	case plan.Runs == 0:
		return id, &BadBulk{"No run fits that any more. Nothing was begun."}
	}
	return e.addBulk(ctx, tx, plan, by, key)
}

// addBulk writes down what is done, and to which runs.
func (e *Engine) addBulk(ctx context.Context, tx tenants.Tx, plan BulkPlan, by tenants.Membership, key string) (BulkID, error) {
	id := tenants.NewID[Bulk]()
	c, err := fitsAction(tx, plan.Action, plan.Filter)
	if err != nil {
		return id, err
	}
	filter, err := json.Marshal(plan.Filter)
	if err != nil {
		return id, fmt.Errorf("write down a filter: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO bulk_jobs (tenant_id, id, action, filter, total, form_key, by_user, by_name) VALUES ($1, $2, $3, $4, 0, $5, $6, $7)`,
		tx.Tenant, id, plan.Action, filter, key, by.User.ID, by.User.Name)
	if err != nil {
		return id, fmt.Errorf("begin a bulk: %w", err)
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf(`
		INSERT INTO bulk_runs (tenant_id, job_id, run_id)
		SELECT r.tenant_id, %s, r.id FROM runs r WHERE %s ORDER BY r.id LIMIT %d`, c.bind(id), c.where(), MostInBulk), c.args...)
	if err != nil {
		return id, fmt.Errorf("choose the runs of a bulk: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE bulk_jobs SET total = $3 WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id, tag.RowsAffected())
	if err != nil {
		return id, fmt.Errorf("count the runs of a bulk: %w", err)
	}
	return id, tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "bulk.started", Target: tenants.Target{Kind: "bulk", ID: id},
		Detail: map[string]any{"action": string(plan.Action), "runs": tag.RowsAffected(), "filter": json.RawMessage(filter)},
	})
}

// StopBulk leaves the runs alone that a bulk has not come to. It returns ErrNoBulk or
// ErrBulkEnded.
func (e *Engine) StopBulk(ctx context.Context, tx tenants.Tx, id BulkID, by tenants.Actor) error {
	tag, err := tx.Exec(ctx, `
		UPDATE bulk_jobs SET state = 'stopped', ended_at = now() WHERE tenant_id = $1 AND id = $2 AND state = 'running'`, tx.Tenant, id)
	if err != nil {
		return fmt.Errorf("stop a bulk: %w", err)
	}
	if tag.RowsAffected() == 0 {
		if _, err := BulkByID(ctx, tx, id); err != nil {
			return err
		}
		return ErrBulkEnded
	}
	left, err := tx.Exec(ctx, `
		UPDATE bulk_runs SET state = 'left', done_at = now() WHERE tenant_id = $1 AND job_id = $2 AND state = 'pending'`, tx.Tenant, id)
	if err != nil {
		return fmt.Errorf("leave the rest of a bulk: %w", err)
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: by, Action: "bulk.stopped", Target: tenants.Target{Kind: "bulk", ID: id}, Detail: map[string]any{"left": left.RowsAffected()},
	})
}

// costOf is what the runs of a bulk have cost together.
func costOf(ctx context.Context, tx tenants.Tx, c choice) (int64, error) {
	var cost int64
	err := tx.QueryRow(ctx, fmt.Sprintf(`
		SELECT coalesce(sum(b.spent_micros), 0)::bigint FROM (SELECT r.id FROM runs r WHERE %s ORDER BY r.id LIMIT %d) fit
		JOIN balances b ON b.tenant_id = $1 AND b.scope = 'run' AND b.scope_id = fit.id::text`, c.where(), MostInBulk), c.args...).Scan(&cost)
	if err != nil {
		return 0, fmt.Errorf("sum up what the runs of a bulk cost: %w", err)
	}
	return cost, nil
}
