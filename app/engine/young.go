package engine

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// AnalyzeYoung has Postgres look anew at tables that are small and have grown several
// times since it did, so that statements are not carried out as they were planned when
// there was next to nothing in them. It returns how many those were. It runs in every
// worker, each second; Postgres itself comes a minute later.
func (e *Engine) AnalyzeYoung(ctx context.Context) (int, error) {
	looked := 0
	err := e.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		return tx.QueryRow(ctx, `SELECT analyze_young_tables()`).Scan(&looked)
	})
	if err != nil {
		return 0, fmt.Errorf("look at young tables: %w", err)
	}
	return looked, nil
}
