package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Replay is a finished AI step put to another model, to compare. It changes nothing in its
// run; what it costs counts as a test.
type Replay struct {
	ID        ReplayID
	Run       RunID
	Step      StepRunID
	Model     string
	State     ReplayState
	StartedBy string
	CreatedAt time.Time
	BeganAt   *time.Time
	EndedAt   *time.Time
	Output    Digest
	Failure   *Failure
	Note      string
	Charge    *ledger.Charge // nil until it is booked, and where nothing was
}

// ReplayID identifies a replay.
type ReplayID = tenants.IDOf[Replay]

// ReplayState is where a replay stands.
type ReplayState string

// The states of a replay, equal to the list in the table's check.
const (
	ReplayQueued  ReplayState = "queued"
	ReplayRunning ReplayState = "running"
	ReplayDone    ReplayState = "done"
	ReplayFailed  ReplayState = "failed"
)

// Final tells that it has ended.
func (s ReplayState) Final() bool { return s == ReplayDone || s == ReplayFailed }

// ErrNotReplayable tells of a step that is no AI step, or has not ended, or asked nothing.
var ErrNotReplayable = errors.New("the step cannot be put to another model")

// ErrNoReplay tells that there is no such replay in the run.
var ErrNoReplay = errors.New("no such replay")

// ReplayPlan is what putting a step to another model would mean.
type ReplayPlan struct {
	Run     Run
	Step    StepRun
	Node    *pipeline.Node
	Ask     AIInput
	Mark    Mark
	Choices []ReplayChoice
}

// ReplayChoice is a model that the step can be put to, with the most that may cost.
type ReplayChoice struct {
	Model string
	Quote ledger.Quote
	Known bool // its price is known, so that it may be called
}

// PlanReplay says what putting a step to one of the models would mean. It returns ErrNoRun,
// ErrNoPart or ErrNotReplayable.
func (e *Engine) PlanReplay(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID, models []string) (ReplayPlan, error) {
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return ReplayPlan{}, err
	}
	plan := ReplayPlan{Run: s.run, Step: s.step, Node: s.program.Node(s.step.StepID), Mark: markOf(s.run, s.step)}
	if plan.Node == nil || plan.Node.AI() == nil || s.step.Kind != pipeline.KindAI || s.step.State.Open() || s.step.Input.IsZero() {
		return plan, ErrNotReplayable
	}
	if plan.Ask, err = askedBy(ctx, tx, s.step); err != nil {
		return plan, err
	}
	prices, err := e.pricesOf(ctx, tx)
	if err != nil {
		return plan, err
	}
	keys, err := tenants.KeysInUse(ctx, tx)
	if err != nil {
		return plan, err
	}
	for _, model := range models {
		payer, _ := payerOf(keys, model)
		quote, err := e.replayQuote(prices.PaidBy(payer), plan.Node, plan.Ask, model, tx.Now)
		plan.Choices = append(plan.Choices, ReplayChoice{Model: model, Quote: quote, Known: err == nil})
	}
	return plan, nil
}

// askedBy is what a step was given.
func askedBy(ctx context.Context, tx tenants.Tx, step StepRun) (AIInput, error) {
	var ask AIInput
	content, err := Value(ctx, tx, step.Input)
	if errors.Is(err, ErrNoValue) {
		return ask, ErrNotReplayable
	}
	if err != nil {
		return ask, fmt.Errorf("read what a step asked: %w", err)
	}
	if err := json.Unmarshal(content.Bytes, &ask); err != nil {
		return ask, ErrNotReplayable
	}
	return ask, nil
}

func (e *Engine) replayQuote(prices ledger.PriceList, node *pipeline.Node, ask AIInput, model string, now time.Time) (ledger.Quote, error) {
	ask.Models = []string{model}
	return prices.Quote(model, now, timeoutOf(node), e.InputBound(ask), int64(ask.MaxTokens))
}

// StartReplay puts a finished step to another model and returns at once; a worker makes the
// call. A form sent again gives the replay that it began. It returns ErrMoved where things
// are not as seen says, ledger.ErrUnknownPrice, and the errors of PlanReplay.
func (e *Engine) StartReplay(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID, model string, seen Mark, hand Hand) (ReplayID, error) {
	before, err := hand.doneBefore(ctx, tx, run)
	if err != nil {
		return ReplayID{}, err
	}
	if before {
		return lastReplay(ctx, tx, step)
	}
	plan, err := e.PlanReplay(ctx, tx, run, step, []string{model})
	switch {
	case err != nil:
		return ReplayID{}, err
	case seen != "" && seen != plan.Mark:
		return ReplayID{}, ErrMoved
	case !plan.Choices[0].Known:
		return ReplayID{}, ledger.ErrUnknownPrice
	}
	id := tenants.NewID[Replay]()
	_, err = tx.Exec(ctx, `
		INSERT INTO replays (tenant_id, id, run_id, step_run_id, model, started_by, started_name) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		tx.Tenant, id, run, step, model, tenants.UserID(hand.By.ID), hand.By.Name)
	if err != nil {
		return id, fmt.Errorf("start a replay: %w", err)
	}
	return id, hand.note(ctx, tx, run, "step.replayed", map[string]any{"step": plan.Node.ID(), "name": plan.Node.Step.Name, "model": model})
}

func lastReplay(ctx context.Context, tx tenants.Tx, step StepRunID) (ReplayID, error) {
	var id ReplayID
	err := tx.QueryRow(ctx, `SELECT id FROM replays WHERE tenant_id = $1 AND step_run_id = $2 ORDER BY id DESC LIMIT 1`, tx.Tenant, step).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return id, ErrNoReplay
	}
	return id, err
}

const replayColumns = `id, run_id, step_run_id, model, state, started_name, created_at, began_at, ended_at, output_digest, failure, note`

func scanReplay(row pgx.CollectableRow) (Replay, error) {
	var r Replay
	var output, failure []byte
	err := row.Scan(&r.ID, &r.Run, &r.Step, &r.Model, &r.State, &r.StartedBy, &r.CreatedAt, &r.BeganAt, &r.EndedAt, &output, &failure, &r.Note)
	if err != nil {
		return r, err
	}
	r.Output = digestFrom(output)
	r.Failure, err = failureFrom(failure)
	return r, err
}

// ReplayByID reads a replay of a run, with what it cost. It returns ErrNoReplay.
func ReplayByID(ctx context.Context, tx tenants.Tx, run RunID, id ReplayID) (Replay, error) {
	rows, _ := tx.Query(ctx, `SELECT `+replayColumns+` FROM replays WHERE tenant_id = $1 AND run_id = $2 AND id = $3`, tx.Tenant, run, id)
	replay, err := pgx.CollectExactlyOneRow(rows, scanReplay)
	if errors.Is(err, pgx.ErrNoRows) {
		return replay, ErrNoReplay
	}
	if err != nil {
		return replay, fmt.Errorf("read a replay: %w", err)
	}
	charges, err := ledger.ChargesOfStep(ctx, tx, ledger.StepRunID(replay.Step))
	if err != nil {
		return replay, err
	}
	var hold ledger.HoldID
	if err := tx.QueryRow(ctx, `SELECT coalesce(hold_id, '00000000-0000-0000-0000-000000000000') FROM replays WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id).Scan(&hold); err != nil {
		return replay, fmt.Errorf("read a replay's money: %w", err)
	}
	for _, charge := range charges {
		if charge.Hold == hold {
			replay.Charge = &charge
		}
	}
	return replay, nil
}

// shownReplays is how many replays of a step are listed: the last ones.
const shownReplays = 20

// ReplaysOf reads the last replays of a step, the newest first.
func ReplaysOf(ctx context.Context, tx tenants.Tx, step StepRunID) ([]Replay, error) {
	rows, _ := tx.Query(ctx, `SELECT `+replayColumns+` FROM replays WHERE tenant_id = $1 AND step_run_id = $2 ORDER BY id DESC LIMIT $3`, tx.Tenant, step, shownReplays)
	replays, err := pgx.CollectRows(rows, scanReplay)
	if err != nil {
		return nil, fmt.Errorf("list a step's replays: %w", err)
	}
	return replays, nil
}
