package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Correction says what a charge's call did cost, once that is known: the charge itself
// never changes.
type Correction struct {
	Hold   HoldID
	Cost   Micros // of the whole call
	Tokens Tokens // of the whole call
	Reason string // for the statement
	By     tenants.UserID
}

type correctionID struct{}

// CorrectionID names the line of a correction.
type CorrectionID = tenants.IDOf[correctionID]

// ErrBadCorrection refuses a correction whose figures no call can have, or that says no
// reason.
var ErrBadCorrection = errors.New("the correction is not valid")

type correctionDocument struct {
	ID             CorrectionID   `json:"id"`
	Hold           HoldID         `json:"hold_id"`
	Total          Micros         `json:"total_micros"`
	Input          int64          `json:"input_tokens"`
	CacheRead      int64          `json:"cache_read_tokens"`
	CacheWrite     int64          `json:"cache_write_tokens"`
	CacheWriteLong int64          `json:"cache_write_long_tokens"`
	Output         int64          `json:"output_tokens"`
	Reasoning      int64          `json:"reasoning_tokens"`
	Reason         string         `json:"reason"`
	By             tenants.UserID `json:"set_by,omitzero"`
}

// Correct books the difference to what was booked before as a line of its own, in the
// month and day of now: a month that is over keeps its figures. It returns what was added,
// which may be below 0. tenants.IsLostRace tells that there is no charge of that hold.
func Correct(ctx context.Context, tx tenants.Tx, c Correction) (Micros, error) {
	reason := plainText(strings.TrimSpace(c.Reason))
	if c.Cost < 0 || c.Cost > MaxMicros || !c.Tokens.plausible() || reason == "" {
		return 0, ErrBadCorrection
	}
	t := c.Tokens
	var added Micros
	err := tx.QueryRow(ctx, `SELECT ledger_correct($1)`, correctionDocument{
		ID: tenants.NewID[correctionID](), Hold: c.Hold, Total: c.Cost, Input: t.Input, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite,
		CacheWriteLong: t.CacheWriteLong, Output: t.Output, Reasoning: t.Reasoning, Reason: reason, By: c.By,
	}).Scan(&added)
	if err != nil {
		return 0, fmt.Errorf("correct a charge: %w", err)
	}
	return added, nil
}

// CorrectTokens corrects a charge by the tokens that its call used, at the charge's own
// rates.
func CorrectTokens(ctx context.Context, tx tenants.Tx, hold HoldID, tokens Tokens, reason string, by tenants.UserID) (Micros, error) {
	lines, err := charges(ctx, tx, `SELECT`+chargeColumns+` FROM charges WHERE tenant_id = $1 AND hold_id = $2`, tx.Tenant, hold)
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return 0, fmt.Errorf("%w: the call was not charged", ErrBadCorrection)
	}
	c := lines[0]
	price := Price{Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, CacheWriteLong: c.CacheWriteLong}
	return Correct(ctx, tx, Correction{Hold: hold, Cost: price.Cost(tokens), Tokens: tokens, Reason: reason, By: by})
}

// CorrectEstimate corrects a charge that was booked because nothing was known of its call,
// by what is known of it now. It returns false, and does nothing, where nothing is known
// now either, or where the charge is no estimate or was corrected before.
func CorrectEstimate(ctx context.Context, tx tenants.Tx, s Settlement, reason string) (bool, error) {
	if s.Unknown || s.Hold.IsZero() {
		return false, nil
	}
	var guessed bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM charges c WHERE c.tenant_id = $1 AND c.hold_id = $2 AND c.estimated AND c.model_billed = ''
		AND NOT EXISTS (SELECT FROM corrections k WHERE k.tenant_id = $1 AND k.hold_id = $2))`, tx.Tenant, s.Hold).Scan(&guessed)
	if err != nil {
		return false, fmt.Errorf("look at a charge: %w", err)
	}
	if !guessed {
		return false, nil
	}
	_, err = Correct(ctx, tx, Correction{Hold: s.Hold, Cost: s.Cost, Tokens: s.Tokens, Reason: reason})
	return err == nil, err
}

// CorrectionLine is a booked correction.
type CorrectionLine struct {
	ID       CorrectionID
	Hold     HoldID
	Run      RunID
	StepRun  StepRunID
	Pipeline PipelineID
	Model    string
	Added    Micros // may be below 0
	Overrun  Micros // of Added
	Reason   string
	By       tenants.UserID
	BookedAt time.Time
	CallAt   time.Time // when the call was made that is corrected
}

// CorrectionsIn are the corrections booked in a month, oldest first, MaxCharges at most.
func CorrectionsIn(ctx context.Context, tx tenants.Tx, month UsageMonth, funds Funds) ([]CorrectionLine, error) {
	rows, _ := tx.Query(ctx, `
		SELECT k.id, k.hold_id, k.run_id, k.step_run_id, k.pipeline_id, k.model, k.cost_micros, k.overrun_micros, k.reason,
			k.set_by, k.created_at, c.started_at
		FROM corrections k JOIN charges c ON c.tenant_id = k.tenant_id AND c.hold_id = k.hold_id
		WHERE k.tenant_id = $1 AND k.funds = $2 AND k.day_start >= $3 AND k.day_start < $4
		ORDER BY k.created_at, k.id LIMIT $5`, tx.Tenant, funds, month.From, month.To, MaxCharges)
	lines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[CorrectionLine])
	if err != nil {
		return nil, fmt.Errorf("read corrections: %w", err)
	}
	return lines, nil
}
