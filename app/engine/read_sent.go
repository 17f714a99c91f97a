package engine

import (
	"context"
	"fmt"

	"tollgate/tenants"
)

// SentMails counts the mails that steps of a run have sent.
func SentMails(ctx context.Context, tx tenants.Tx, run RunID) (int, error) {
	var sent int
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND kind = 'email' AND state = 'done'`, tx.Tenant, run).Scan(&sent)
	if err != nil {
		return 0, fmt.Errorf("count the mails of a run: %w", err)
	}
	return sent, nil
}
