package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// KeysKept is how long the key of a start counts: a second start within it is the same.
const KeysKept = 30 * 24 * time.Hour

// OtherStart tells that the key of a start belongs to a run of another pipeline, or with
// another input. Nothing was started.
type OtherStart struct{ First Run }

func (e *OtherStart) Error() string {
	return fmt.Sprintf("the key belongs to run %s, which was started with other input", e.First.ID)
}

// startedBefore tells whether an earlier start had the key. If that was another start, it
// is refused.
func (s *starting) startedBefore() bool {
	if !s.started.Before {
		return false
	}
	if first := s.started.Run; first.PipelineID != s.Pipeline || first.Input != DigestOf(s.Input) {
		s.err = &OtherStart{first}
	}
	return true
}

// freeOldKeys takes the keys from runs that were started longer ago than they count.
func freeOldKeys(ctx context.Context, tx tenants.Tx, all []*starting) error {
	var old []RunID
	for _, one := range all {
		if one.started.Before && tx.Now.Sub(one.started.Run.CreatedAt) >= KeysKept {
			old = append(old, one.started.Run.ID)
			one.started = Started{}
		}
	}
	if len(old) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE runs SET start_key = NULL WHERE tenant_id = $1 AND id = ANY ($2)`, tx.Tenant, old); err != nil {
		return fmt.Errorf("free the keys of old starts: %w", err)
	}
	return nil
}

// PruneKeys takes the keys of starts from runs that are older than KeysKept, so many in
// each transaction, and returns how many those were.
func (e *Engine) PruneKeys(ctx context.Context) (int, error) {
	var owners []tenants.ID
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		rows, _ := tx.Query(ctx, `SELECT DISTINCT tenant_id FROM runs WHERE start_key IS NOT NULL AND created_at < now() - $1::interval`, KeysKept)
		var err error
		owners, err = pgx.CollectRows(rows, pgx.RowTo[tenants.ID])
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for old keys of starts: %w", err)
	}
	gone := 0
	_, err = each(owners, "prune a tenant's keys of starts", func(tenant tenants.ID) error {
		for {
			n, err := e.pruneKeys(ctx, tenant)
			gone += n
			if n < prunedAtOnce || err != nil {
				return err
			}
		}
	})
	return gone, err
}

func (e *Engine) pruneKeys(ctx context.Context, tenant tenants.ID) (int, error) {
	gone := 0
	err := e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE runs SET start_key = NULL WHERE tenant_id = $1 AND id = ANY (ARRAY(
				SELECT id FROM runs WHERE tenant_id = $1 AND start_key IS NOT NULL AND created_at < now() - $2::interval
				ORDER BY id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED))`, tenant, KeysKept, prunedAtOnce)
		gone = int(tag.RowsAffected())
		return err
	})
	return gone, err
}
