package ledger

import (
	"slices"
	"strings"
	"time"

	"tollgate/tenants"
)

// The ledger knows runs, step runs, pipelines and provider keys by their ids only. The
// rooms that own them convert theirs: ledger.RunID(id).
type (
	run         struct{}
	stepRun     struct{}
	pipeline    struct{}
	providerKey struct{}

	RunID      = tenants.IDOf[run]
	StepRunID  = tenants.IDOf[stepRun]
	PipelineID = tenants.IDOf[pipeline]
	KeyID      = tenants.IDOf[providerKey]
)

// HoldID is the id of one model call, given by the caller. The hold and the charge of
// the call both bear it.
type HoldID = tenants.IDOf[Hold]

// Payer tells whose provider key pays for a call.
type Payer string

// The payers there are.
const (
	PayerOwn      Payer = "own"      // the tenant's own key: capped and shown, not billed
	PayerPlatform Payer = "platform" // our key: billed to the tenant
)

// Kind tells what a call is made for.
type Kind string

// The kinds there are.
const (
	Ordinary Kind = "ordinary" // a run's own work; the zero Kind means it
	Test     Kind = "test"     // trying a step out: counts under the test budget too
)

// StepLimit is the most that a step run, with everything inside it, may cost: a loop's
// limit, or what a step may cost over all its tries.
type StepLimit struct {
	Step  StepRunID `json:"id"`
	Limit Micros    `json:"most"`
}

// Hold is a reservation for one model call of one attempt of a step run.
type Hold struct {
	ID      HoldID
	Run     RunID
	StepRun StepRunID
	Attempt int
	Quote
	Payer Payer
	Kind  Kind

	Key        KeyID          // the tenant's own key that pays; zero for the platform's
	Member     tenants.UserID // who started the run; zero where nobody did
	CostCentre string         // at most 100 characters; empty for none
	Ancestors  []RunID        // the runs above a child run: their caps cover it
	// Limits are those of the step run itself and of the step runs around it. With the
	// first hold beneath one, its limit becomes a cap, which then can be raised; what a
	// later hold says of the same step run changes nothing.
	Limits []StepLimit

	// At is when the call starts, which decides the month it counts in. Zero means the
	// database's clock, which is right unless a test needs another.
	At time.Time
	// Lifetime is how long the call may take at most; ExpireHolds looks for the hold
	// only after it. Zero means DefaultLifetime.
	Lifetime time.Duration
	// Parked says that the call does not follow at once. Until QueueDispatch tells that
	// it does, giving up costs nothing.
	Parked bool
}

// DefaultLifetime is the lifetime of a hold that names none.
const DefaultLifetime = 15 * time.Minute

// holdDocument has the column names of table holds, as ledger_hold wants them.
type holdDocument struct {
	ID              HoldID    `json:"id"`
	Run             RunID     `json:"run_id"`
	StepRun         StepRunID `json:"step_run_id"`
	Attempt         int       `json:"attempt"`
	Model           string    `json:"model"`
	Funds           Funds     `json:"funds"`
	Payer           Payer     `json:"payer"`
	Amount          Micros    `json:"amount"`
	Dispatched      bool      `json:"dispatched"`
	StartedAt       time.Time `json:"started_at,omitzero"`
	LifetimeSeconds float64   `json:"lifetime_seconds"`

	Kind       Kind           `json:"kind,omitempty"`
	Key        KeyID          `json:"key_id,omitzero"`
	Member     tenants.UserID `json:"member_id,omitzero"`
	CostCentre string         `json:"cost_centre,omitempty"`
	Ancestors  []RunID        `json:"ancestors,omitempty"`
	Steps      []StepRunID    `json:"steps,omitempty"`
	StepLimits []StepLimit    `json:"step_limits,omitempty"`
	priceColumns
}

// priceColumns are the rates of a price as holds and charges keep them.
type priceColumns struct {
	Input          *Micros `json:"price_input"`
	Output         *Micros `json:"price_output"`
	CacheRead      *Micros `json:"price_cache_read"`
	CacheWrite     *Micros `json:"price_cache_write"`
	CacheWriteLong *Micros `json:"price_cache_write_long"`
	ID             PriceID `json:"price_id,omitzero"`
}

func (h Hold) document() holdDocument {
	lifetime := h.Lifetime
	if lifetime <= 0 {
		lifetime = DefaultLifetime
	}
	return holdDocument{
		ID: h.ID, Run: h.Run, StepRun: h.StepRun, Attempt: h.Attempt,
		Model: plainText(h.Model), Funds: h.Price.Funds, Payer: h.Payer, Amount: h.Amount,
		Dispatched: !h.Parked, StartedAt: h.At, LifetimeSeconds: lifetime.Seconds(),
		Kind: h.Kind, Key: h.Key, Member: h.Member, CostCentre: h.CostCentre, Ancestors: h.ancestors(),
		Steps: h.steps(), StepLimits: h.Limits, priceColumns: h.Price.columns(0),
	}
}

// ancestors are the runs above, each once: one named twice would be counted twice.
func (h Hold) ancestors() []RunID {
	var above []RunID
	for _, run := range h.Ancestors {
		if run != h.Run && !slices.Contains(above, run) {
			above = append(above, run)
		}
	}
	return above
}

func (h Hold) steps() []StepRunID {
	var limited []StepRunID
	for _, l := range h.Limits {
		if !slices.Contains(limited, l.Step) {
			limited = append(limited, l.Step)
		}
	}
	return limited
}

// columns are the rates of a call that reads so many tokens.
func (p Price) columns(read int64) priceColumns {
	r := p.rates(read)
	return priceColumns{
		Input: r.Input.column(), Output: r.Output.column(), CacheRead: r.CacheRead.column(),
		CacheWrite: r.CacheWrite.column(), CacheWriteLong: r.CacheWriteLong.column(), ID: p.ID,
	}
}

func (r Rate) column() *Micros {
	if !r.known {
		return nil
	}
	return &r.micros
}

func rateOf(column *Micros) Rate {
	if column == nil {
		return Rate{}
	}
	return PerMillion(*column)
}

// maxText bounds what a provider may have us keep beside a charge.
const maxText = 300

// plainText makes a provider's text storable: valid UTF-8 without NUL, of bounded size.
func plainText(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}
