package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// capReachedState is the SQLSTATE that ledger_refuse raises.
const capReachedState = "TG002"

// CapReached tells which cap did not allow a hold: of all that did not, the one with
// the least left.
type CapReached struct {
	Scope       Scope     `json:"scope"`
	ID          string    `json:"scope_id"`
	Funds       Funds     `json:"funds"`
	PeriodStart time.Time `json:"period_start"` // without meaning for a run and a step
	Limit       Micros    `json:"limit"`
	Needed      Micros    `json:"needed"`
	Available   Micros    `json:"available"` // never below 0
}

// AsCapReached tells that an error means a hold that did not fit, and of which cap. The
// batch that held it has changed nothing.
func AsCapReached(err error) (*CapReached, bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != capReachedState {
		return nil, false
	}
	var reached CapReached
	if json.Unmarshal([]byte(pg.Detail), &reached) != nil {
		return nil, false
	}
	return &reached, true
}

// String is the sentence for people.
func (c *CapReached) String() string {
	owner := map[Scope]string{
		ScopeStep:       "This step's",
		ScopeRun:        "This run's",
		ScopePipeline:   "This pipeline's monthly",
		ScopeCostCentre: fmt.Sprintf("The cost centre “%s”'s monthly", c.ID),
		ScopeKey:        "This provider key's monthly",
		ScopeTest:       "The tests' monthly",
		ScopeTenantDay:  "The workspace's daily",
		ScopeTenant:     "The workspace's monthly",
	}[c.Scope]
	if c.Funds == Pretend {
		owner += " pretend"
	}
	if c.Limit == 0 {
		return owner + " AI spend cap is $0.00, which allows no AI calls."
	}
	return fmt.Sprintf("%s AI spend cap of %v has %v left, and this call may cost up to %v.",
		owner, c.Limit, c.Available, c.Needed)
}
