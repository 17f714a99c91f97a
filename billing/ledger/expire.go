package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// Expired counts what a sweep ended.
type Expired struct {
	Settled  int // booked at the reserved amount, marked as estimates
	Released int // given back: their calls were never sent
}

// sweepSize is how many holds one sweep ends at most; the next one goes on.
const sweepSize = 500

// orphan is a hold that nobody will end any more.
type orphan struct {
	tenant tenants.ID
	hold   HoldID
}

// ExpireHolds ends holds past their time whose step run is no longer at the attempt
// they were made for: their worker is gone and will not settle them. A hold of a
// running attempt is left alone however old it is, since its call may still answer.
// Each hold is a transaction of its own, so that one that cannot be ended stops no
// other; the errors are joined.
func ExpireHolds(ctx context.Context, db *tenants.DB) (Expired, error) {
	var left []orphan
	err := db.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		found, err := findOrphans(ctx, tx)
		left = found
		return err
	})
	if err != nil {
		return Expired{}, err
	}
	var done Expired
	var failures []error
	for _, one := range left {
		ended, err := abandon(ctx, db, one)
		if err != nil {
			failures = append(failures, fmt.Errorf("end hold %v: %w", one.hold, err))
		}
		switch ended {
		case "settled":
			done.Settled++
		case "released":
			done.Released++
		}
	}
	return done, errors.Join(failures...)
}

func findOrphans(ctx context.Context, tx tenants.SystemTx) ([]orphan, error) {
	const query = `
		SELECT h.tenant_id, h.id
		FROM holds h
		JOIN step_runs s ON s.tenant_id = h.tenant_id AND s.id = h.step_run_id
		WHERE h.state = 'open' AND h.expires_at < $1 AND NOT (s.state = 'running' AND s.attempt = h.attempt)
		ORDER BY h.expires_at
		LIMIT $2`
	rows, err := tx.Query(ctx, query, tx.Now, sweepSize)
	if err != nil {
		return nil, fmt.Errorf("look for expired holds: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (orphan, error) {
		var one orphan
		err := row.Scan(&one.tenant, &one.hold)
		return one, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for expired holds: %w", err)
	}
	return found, nil
}

// abandon ends one hold and returns how; "" if somebody else did in the meantime.
func abandon(ctx context.Context, db *tenants.DB, one orphan) (string, error) {
	var ended *string
	err := db.InTx(ctx, one.tenant, func(ctx context.Context, tx tenants.Tx) error {
		return tx.QueryRow(ctx, `SELECT ledger_abandon($1)`, one.hold).Scan(&ended)
	})
	if err != nil || ended == nil {
		return "", err
	}
	return *ended, nil
}
