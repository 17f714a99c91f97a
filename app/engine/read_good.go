package engine

import (
	"context"
	"errors"

	"tollgate/tenants"
)

// LastGood reads the last run of a run's pipeline before it that was done, and whether there
// is one. Samples are compared with samples only.
func LastGood(ctx context.Context, tx tenants.Tx, run Run) (Run, bool, error) {
	good, err := oneRun(ctx, tx, `r.tenant_id = $1 AND r.id = (
		SELECT g.id FROM runs g
		WHERE g.tenant_id = $1 AND g.pipeline_id = $2 AND g.state = 'completed' AND g.created_at IS NOT NULL AND g.id < $3 AND g.sample = $4
		ORDER BY g.id DESC LIMIT 1)`, tx.Tenant, run.PipelineID, run.ID, run.Sample)
	if errors.Is(err, ErrNoRun) {
		return Run{}, false, nil
	}
	return good, err == nil, err
}
