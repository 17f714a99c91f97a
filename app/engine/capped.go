package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// cappedLook is how many steps of a tenant one look at its caps covers at most.
const cappedLook = 100

// ResumeFitting wakes what was stopped by a cap and would fit under it now, and returns
// how many steps that were. A cap makes room without anybody's raising it, when a call
// costs less than was reserved or a month begins; and a raise may come in the instant
// in which a step goes to wait for it. It runs every few seconds. What waits for a
// person's word waits on, and so does what was stopped in an earlier month where the
// workspace wants to be asked before such runs use the new one's money.
func (e *Engine) ResumeFitting(ctx context.Context) (int, error) {
	var stopped []tenants.ID
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM waits WHERE state = 'open' AND kind = 'cap'`)
		var err error
		stopped, err = pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for steps stopped by a cap: %w", err)
	}
	woken := 0
	_, err = each(stopped, "look at a tenant's caps", func(tenant tenants.ID) error {
		fitting, err := e.fitting(ctx, tenant)
		if err != nil {
			return err
		}
		done, err := each(fitting, "wake a step stopped by a cap", func(step StepRunID) error {
			return e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
				return e.wake(ctx, tx, waking{step: step, state: "done"})
			})
		})
		woken += done
		return err
	})
	return woken, err
}

// fitting lists the tenant's steps that wait at a cap and fit under it now, the longest
// waiting first, no more than fit together.
func (e *Engine) fitting(ctx context.Context, tenant tenants.ID) ([]StepRunID, error) {
	var fitting []StepRunID
	err := e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		fitting = nil
		month, err := ledger.Month(ctx, tx)
		if err != nil || full(month.Real) && full(month.Pretend) {
			return err
		}
		settings, err := ledger.SettingsOf(ctx, tx)
		if err != nil {
			return err
		}
		var since time.Time
		if settings.TurnAsks {
			since = month.From
		}
		waiting, err := cappedSteps(ctx, tx, since)
		if err != nil {
			return err
		}
		var dry ledger.Dry
		for _, step := range waiting {
			need, err := e.needOf(ctx, tx, step)
			if err != nil {
				return err
			}
			fits, err := need.fits(ctx, tx, &dry)
			if err != nil {
				return err
			}
			if fits {
				fitting = append(fitting, step.ID)
			}
		}
		return nil
	})
	return fitting, err
}

// cappedSteps are those that were stopped since an instant and wait for no word.
func cappedSteps(ctx context.Context, tx tenants.Tx, since time.Time) ([]StepRun, error) {
	return stepRuns(ctx, tx, `tenant_id = $1 AND state = 'waiting' AND id IN (
		SELECT step_run_id FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind = 'cap'
			AND NOT asks_word AND opened_at >= $3 ORDER BY id LIMIT $2)
		ORDER BY id`, tx.Tenant, cappedLook, since)
}

// need is what a step's call would reserve, and where it counts. Without a hold it would
// fail for another reason, which it says itself once it is woken.
type need struct{ hold *ledger.Hold }

// needOf works out again what a waiting step's call needs.
func (e *Engine) needOf(ctx context.Context, tx tenants.Tx, step StepRun) (need, error) {
	var owner RunID
	if err := tx.QueryRow(ctx, `SELECT run_id FROM step_runs WHERE tenant_id = $1 AND id = $2`, tx.Tenant, step.ID).Scan(&owner); err != nil {
		return need{}, fmt.Errorf("find a step's run: %w", err)
	}
	run, err := RunByID(ctx, tx, owner)
	if err != nil {
		return need{}, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, run.Version)
	if err != nil {
		return need{}, err
	}
	input, err := Value(ctx, tx, step.Input)
	if err != nil {
		return need{}, fmt.Errorf("read a call's input: %w", err)
	}
	given, err := Value(ctx, tx, run.Input)
	if err != nil {
		return need{}, fmt.Errorf("read a run's input: %w", err)
	}
	d := &decider{moment: moment{run: run, now: tx.Now, inputBound: e.InputBound, program: version.Program}}
	if d.scope, err = newScope(run, given.Bytes); err != nil {
		return need{}, err
	}
	hold, err := e.funded(ctx, tx, d, version.Program.Node(step.StepID), step, input.Bytes)
	return need{hold: hold}, err
}

// fits tells whether a need fits under every cap beside those that fitted before.
func (n need) fits(ctx context.Context, tx tenants.Tx, dry *ledger.Dry) (bool, error) {
	if n.hold == nil {
		return true, nil
	}
	reached, err := dry.Fits(ctx, tx, *n.hold)
	return reached == nil, err
}

// full tells that a cap leaves nothing at all.
func full(s ledger.Standing) bool {
	left, capped := s.Left()
	return capped && left == 0
}
