package ledger

import (
	"context"
	"fmt"
	"time"

	"tollgate/tenants"
)

// Statement is what a month came to.
type Statement struct {
	UsageMonth
	Funds Funds
	// Closed says that the figures do not change any more: the month is over and none of
	// its calls is under way. What is learnt later is booked as a correction in the month
	// of that day.
	Closed     bool
	Open       int64  // calls of the month that are under way
	Held       Micros // reserved for them
	Calls      int64
	Estimated  int64  // of Calls
	Charged    Micros // for Calls
	Corrected  Micros // corrections of earlier lines, booked in this month; may be below 0
	Own        Micros // of Charged and Corrected, what the tenant's own keys paid for
	Overrun    Micros // of Charged and Corrected, what went beyond reservations
	Correction int64  // lines of Corrected
}

// Total is what the month came to with its corrections.
func (s Statement) Total() Micros { return s.Charged + s.Corrected }

// settling is how long after its end a month may still get calls that began before it, in
// transactions that take their time.
const settling = 15 * time.Minute

// StatementOf is the statement of a month. A month of the future or one without calls has
// zeros.
func StatementOf(ctx context.Context, tx tenants.Tx, month UsageMonth, funds Funds) (Statement, error) {
	s := Statement{UsageMonth: month, Funds: funds}
	err := tx.QueryRow(ctx, `
		SELECT count(*), coalesce(sum(amount::bigint), 0)::bigint FROM holds
		WHERE tenant_id = $1 AND state = 'open' AND funds = $2 AND month_start = $3`, tx.Tenant, funds, month.From).Scan(&s.Open, &s.Held)
	if err != nil {
		return Statement{}, fmt.Errorf("read a month's open calls: %w", err)
	}
	s.Closed = s.Open == 0 && tx.Now.After(month.To.Add(settling))
	err = tx.QueryRow(ctx, `
		SELECT coalesce(sum(calls), 0)::bigint, coalesce(sum(estimated), 0)::bigint, coalesce(sum(cost - correction), 0)::bigint,
			coalesce(sum(correction), 0)::bigint, coalesce(sum(cost) FILTER (WHERE payer = 'own'), 0)::bigint, coalesce(sum(overrun), 0)::bigint
		FROM (`+usageLines+`) u`, tx.Tenant, month.From, funds, month.To).
		Scan(&s.Calls, &s.Estimated, &s.Charged, &s.Corrected, &s.Own, &s.Overrun)
	if err != nil {
		return Statement{}, fmt.Errorf("sum up a month: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM corrections WHERE tenant_id = $1 AND funds = $2 AND day_start >= $3 AND day_start < $4`,
		tx.Tenant, funds, month.From, month.To).Scan(&s.Correction)
	if err != nil {
		return Statement{}, fmt.Errorf("count a month's corrections: %w", err)
	}
	return s, nil
}
