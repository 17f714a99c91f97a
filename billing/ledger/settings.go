package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Settings are how a workspace handles its money.
type Settings struct {
	// SecondAbove is the amount above which a second person must confirm a cap; with
	// one, each price needs a second person too. Nil means that one person is enough.
	SecondAbove *Micros `json:"second_above"`
	// TurnAsks lets runs that a cap stopped in one month wait for a person's word
	// before they use the money of the next.
	TurnAsks bool `json:"turn_asks"`
	// RunCap is the cap of a run whose pipeline names none; nil for none.
	RunCap *Micros `json:"run_cap"`
}

// defaults hold where nobody set anything.
var defaults = Settings{TurnAsks: true}

// SettingsOf reads the tenant's settings.
func SettingsOf(ctx context.Context, tx tenants.Tx) (Settings, error) {
	s := defaults
	err := tx.QueryRow(ctx, `SELECT second_above::bigint, turn_asks, run_cap::bigint FROM money_settings WHERE tenant_id = $1`, tx.Tenant).
		Scan(&s.SecondAbove, &s.TurnAsks, &s.RunCap)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Settings{}, fmt.Errorf("read the settings of money: %w", err)
	}
	return s, nil
}

// loosens tells that the other settings ask for a second person less often.
func (s Settings) loosens(other Settings) bool {
	return s.SecondAbove != nil && (other.SecondAbove == nil || *other.SecondAbove > *s.SecondAbove)
}

// asksSecond tells that a cap which goes from one limit to another needs two people:
// it rises, and ends above the set amount. A nil limit is above all.
func (s Settings) asksSecond(from, to *Micros) bool {
	if s.SecondAbove == nil || from == nil {
		return false
	}
	rises := to == nil || *to > *from
	return rises && (to == nil || *to > *s.SecondAbove)
}

func (s Settings) check() error {
	for _, amount := range []*Micros{s.SecondAbove, s.RunCap} {
		if amount != nil && (*amount < 0 || *amount > MaxMicros) {
			return fmt.Errorf("%w: it is not between 0 and %v", ErrBadCap, MaxMicros)
		}
	}
	return nil
}

func writeSettings(ctx context.Context, tx tenants.Tx, s Settings, by tenants.UserID) error {
	if err := s.check(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO money_settings (tenant_id, second_above, turn_asks, run_cap, set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id) DO UPDATE SET second_above = excluded.second_above, turn_asks = excluded.turn_asks,
			run_cap = excluded.run_cap, set_by = excluded.set_by, set_at = excluded.set_at`,
		tx.Tenant, s.SecondAbove, s.TurnAsks, s.RunCap, by, tx.Now)
	if err != nil {
		return fmt.Errorf("write the settings of money: %w", err)
	}
	return nil
}

// QueueDefaultRunCaps gives runs that start in this batch, and whose pipelines name no
// cap, the one of the workspace's settings, for either kind of funds.
func QueueDefaultRunCaps(b *tenants.Batch, runs []RunID) {
	b.Queue(`
		INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros)
		SELECT s.tenant_id, $1, r::text, f, $2, s.run_cap
		FROM money_settings s CROSS JOIN unnest($3::uuid[]) r CROSS JOIN unnest(ARRAY['real', 'pretend']) f
		WHERE s.tenant_id = ledger_tenant() AND s.run_cap IS NOT NULL
		ON CONFLICT DO NOTHING`, ScopeRun, ScopeRun.period(), runs)
}
