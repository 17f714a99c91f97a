package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// replayPause is how long a worker rests between looks for replays.
const replayPause = time.Second

// RunReplays makes the calls of replays, one after the other, until it is stopped. It runs
// in every worker; a row is taken by one of them.
func (w *Worker) RunReplays(ctx context.Context) {
	for ctx.Err() == nil {
		did, err := w.replayNext(ctx)
		if err != nil && ctx.Err() == nil {
			w.Log.Error("a replay could not be made", slog.String("error", err.Error()))
		}
		if did && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(replayPause):
		}
	}
}

// openReplay is one that can be taken, or whose worker is gone.
type openReplay struct {
	Tenant tenants.ID
	ID     ReplayID
	State  ReplayState
}

func (w *Worker) replayNext(ctx context.Context) (bool, error) {
	var open []openReplay
	err := w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		dead, err := w.Dead(ctx, tx)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			SELECT tenant_id, id, state FROM replays
			WHERE state = 'queued' AND not_before <= now() OR state = 'running' AND worker_id = ANY ($1) ORDER BY not_before LIMIT 1`, dead)
		open, err = pgx.CollectRows(rows, pgx.RowToStructByPos[openReplay])
		return err
	})
	if err != nil || len(open) == 0 {
		return false, err
	}
	one := open[0]
	if one.State == ReplayRunning {
		return true, w.replayLost(ctx, one)
	}
	return true, w.replay(ctx, one)
}

// replayCall is a replay that is about to be made.
type replayCall struct {
	openReplay
	step  StepRun
	run   Run
	node  *pipeline.Node
	input []byte
	hold  ledger.Hold
	list  ledger.PriceList
}

// replay makes one call: it takes the row and holds the money, asks, and writes down what
// came, each in a transaction of its own.
func (w *Worker) replay(ctx context.Context, one openReplay) error {
	var call replayCall
	err := w.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		call, err = w.takeReplay(ctx, tx, one)
		return err
	})
	if reached, ok := ledger.AsCapReached(err); ok {
		return w.endReplay(ctx, one, ReplayQueued, &Failure{Class: "cap", Message: reached.String()})
	}
	if errors.Is(err, ledger.ErrUnknownPrice) {
		return w.endReplay(ctx, one, ReplayQueued, &Failure{Class: ClassNoPrice, Message: "The price of the model is not known any more, so it was not called."})
	}
	if errors.Is(err, errStale) {
		return nil // another worker has it
	}
	if err != nil {
		return err
	}
	callCtx, cancel := context.WithTimeout(ctx, timeoutOf(call.node))
	defer cancel()
	reply := w.Callers[pipeline.KindAI].Call(callCtx, Call{
		Tenant: one.Tenant, Run: call.run.ID, StepRun: call.step.ID, Attempt: call.step.Attempt,
		Key: "replay-" + one.ID.String(), Input: call.input, OwnKey: tenants.ProviderKeyID(call.hold.Key), Live: func(string) {},
	})
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer done()
	return patiently(keep, func() error { return w.noteReplay(keep, call, reply) })
}

// takeReplay takes the row and reserves the money.
func (w *Worker) takeReplay(ctx context.Context, tx tenants.Tx, one openReplay) (replayCall, error) {
	call := replayCall{openReplay: one}
	var run RunID
	var step StepRunID
	var model string
	var by tenants.UserID
	id := tenants.NewID[ledger.Hold]()
	err := tx.QueryRow(ctx, `
		UPDATE replays SET state = 'running', worker_id = $3, hold_id = $4, began_at = now()
		WHERE tenant_id = $1 AND id = $2 AND state = 'queued' RETURNING run_id, step_run_id, model, started_by`,
		tx.Tenant, one.ID, w.ID, id).Scan(&run, &step, &model, &by)
	if errors.Is(err, pgx.ErrNoRows) {
		return call, errStale
	}
	if err != nil {
		return call, fmt.Errorf("take a replay: %w", err)
	}
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return call, err
	}
	call.run, call.step, call.node = s.run, s.step, s.program.Node(s.step.StepID)
	ask, err := askedBy(ctx, tx, s.step)
	if err != nil {
		return call, err
	}
	ask.Models = []string{model}
	if call.input, err = json.Marshal(ask); err != nil {
		return call, err
	}
	if call.list, err = w.pricesOf(ctx, tx); err != nil {
		return call, err
	}
	keys, err := tenants.KeysInUse(ctx, tx)
	if err != nil {
		return call, err
	}
	payer, key := payerOf(keys, model)
	quote, err := w.replayQuote(call.list.PaidBy(payer), call.node, ask, model, tx.Now)
	if err != nil {
		return call, err
	}
	call.hold = ledger.Hold{
		ID: id, Run: ledger.RunID(run), StepRun: ledger.StepRunID(step), Attempt: s.step.Attempt, Quote: quote,
		Payer: payer, Key: key, Kind: ledger.Test, Member: by, Lifetime: timeoutOf(call.node),
	}
	batch := &tenants.Batch{}
	ledger.QueueHold(batch, call.hold)
	return call, tx.Send(ctx, batch)
}

// noteReplay writes down what came of the call. One that a limit of ours left no room for
// goes back into the queue.
func (w *Worker) noteReplay(ctx context.Context, call replayCall, reply Reply) error {
	return w.DB.InTx(ctx, call.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		batch := &tenants.Batch{}
		var output Digest
		state, failure := ReplayDone, reply.Failure
		if failure == nil {
			_, failure = readOutput(reply.Output)
		}
		if failure != nil {
			state = ReplayFailed
		} else if reply.Output != nil {
			output = queueValue(batch, tx.Tenant, call.run.ID, mediaJSON, reply.Output)
		}
		if reply.NotCalled && reply.Failure != nil {
			batch.Guarded(`UPDATE replays SET state = 'queued', worker_id = NULL, hold_id = NULL, began_at = NULL, not_before = now() + $4::interval
				WHERE tenant_id = $1 AND id = $2 AND state = 'running' AND worker_id = $3 RETURNING 1`, tx.Tenant, call.ID, w.ID, min(max(reply.RetryAfter, shortestPutOff), LongestAsked))
		} else {
			batch.Guarded(`UPDATE replays SET state = $4, ended_at = now(), output_digest = $5, failure = $6, note = $7
				WHERE tenant_id = $1 AND id = $2 AND state = 'running' AND worker_id = $3 RETURNING 1`,
				tx.Tenant, call.ID, w.ID, state, output.bytes(), failure.json(), expr.Plain(reply.Note))
		}
		d := drive{scope: scope{prices: call.list}}
		d.bill(call.hold, reply.Bill).queue(batch)
		err := tx.Send(ctx, batch)
		if tenants.IsLostRace(err) {
			return errStale // it was taken for dead, and booked
		}
		return err
	})
}

// endReplay ends a replay that was not made.
func (w *Worker) endReplay(ctx context.Context, one openReplay, from ReplayState, why *Failure) error {
	return w.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE replays SET state = 'failed', ended_at = now(), failure = $4 WHERE tenant_id = $1 AND id = $2 AND state = $3`,
			tx.Tenant, one.ID, from, why.json())
		if err != nil {
			return fmt.Errorf("end a replay: %w", err)
		}
		return nil
	})
}

// replayLost ends a replay whose worker is gone. What the call may have cost is booked; it
// is not made again, since whoever wanted it can ask once more.
func (w *Worker) replayLost(ctx context.Context, one openReplay) error {
	why := &Failure{Class: ClassInterrupted, Message: "The program stopped in the middle of this call. Nothing came of it; start it again if it is still wanted."}
	err := w.DB.InTx(ctx, one.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		var hold ledger.HoldID
		err := tx.QueryRow(ctx, `SELECT hold_id FROM replays WHERE tenant_id = $1 AND id = $2 AND state = 'running' FOR UPDATE`, tx.Tenant, one.ID).Scan(&hold)
		if errors.Is(err, pgx.ErrNoRows) {
			return errStale
		}
		if err != nil {
			return fmt.Errorf("find a lost replay: %w", err)
		}
		batch := &tenants.Batch{}
		ledger.QueueSettle(batch, ledger.SettleUnknown(hold))
		return tx.Send(ctx, batch)
	})
	if err != nil && !tenants.IsLostRace(err) && !errors.Is(err, errStale) { // its hold may have run out and be booked
		return err
	}
	return w.endReplay(ctx, one, ReplayRunning, why)
}
