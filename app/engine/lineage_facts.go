package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/review"
	"tollgate/tenants"
)

// completeOrigins adds who and what made what the origins gave.
func (e *Engine) completeOrigins(ctx context.Context, tx tenants.Tx, lineage *Lineage) error {
	versions, err := VersionsOf(ctx, tx, lineage.Run)
	if err != nil {
		return err
	}
	byRow, rows, reused := map[StepRunID]*Origin{}, []StepRunID{}, map[StepRunID][]*Origin{}
	for i := range lineage.Origins {
		origin := &lineage.Origins[i]
		origin.Version = versions.at(lineage.Run, origin.Row.CreatedAt)
		byRow[origin.Row.ID], rows = origin, append(rows, origin.Row.ID)
		if from := origin.Row.ReusedFrom; !from.IsZero() {
			reused[from], rows = append(reused[from], origin), append(rows, from)
		}
	}
	for _, add := range []func() error{
		func() error { return addModels(ctx, tx, rows, byRow, reused) },
		func() error { return addEvents(ctx, tx, rows, byRow) },
		func() error { return addReused(ctx, tx, reused) },
		func() error { return addChildren(ctx, tx, rows, byRow) },
		func() error { return e.addReviews(ctx, tx, rows, byRow) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// addModels reads which models answered. What was taken over was answered elsewhere.
func addModels(ctx context.Context, tx tenants.Tx, steps []StepRunID, byRow map[StepRunID]*Origin, reused map[StepRunID][]*Origin) error {
	rows, _ := tx.Query(ctx, `
		SELECT step_run_id, coalesce(nullif(model_billed, ''), model) FROM charges
		WHERE tenant_id = $1 AND step_run_id = ANY ($2) AND kind <> 'test' GROUP BY 1, 2 ORDER BY 1, max(started_at)`, tx.Tenant, steps)
	var step StepRunID
	var model string
	_, err := pgx.ForEachRow(rows, []any{&step, &model}, func() error {
		if origin := byRow[step]; origin != nil {
			origin.Models = append(origin.Models, model)
		}
		for _, origin := range reused[step] {
			origin.Models = append(origin.Models, model)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read which models answered: %w", err)
	}
	return nil
}

func addEvents(ctx context.Context, tx tenants.Tx, steps []StepRunID, byRow map[StepRunID]*Origin) error {
	rows, _ := tx.Query(ctx, `
		SELECT u.step_run_id, e.id, e.sender, e.sent_at FROM event_uses u JOIN events e ON e.tenant_id = u.tenant_id AND e.id = u.event_id
		WHERE u.tenant_id = $1 AND u.step_run_id = ANY ($2)`, tx.Tenant, steps)
	var step StepRunID
	var event EventOrigin
	_, err := pgx.ForEachRow(rows, []any{&step, &event.ID, &event.Sender, &event.SentAt}, func() error {
		if origin := byRow[step]; origin != nil {
			taken := event
			origin.Event = &taken
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read which events were taken: %w", err)
	}
	return nil
}

func addChildren(ctx context.Context, tx tenants.Tx, steps []StepRunID, byRow map[StepRunID]*Origin) error {
	rows, _ := tx.Query(ctx, `
		SELECT r.parent_step_run, r.id, p.name, r.number FROM runs r JOIN pipelines p ON p.tenant_id = r.tenant_id AND p.id = r.pipeline_id
		WHERE r.tenant_id = $1 AND r.parent_step_run = ANY ($2) ORDER BY r.id`, tx.Tenant, steps)
	var step StepRunID
	var child ChildOrigin
	_, err := pgx.ForEachRow(rows, []any{&step, &child.Run, &child.Pipeline, &child.Number}, func() error {
		if origin := byRow[step]; origin != nil {
			last := child
			origin.Child = &last
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read which runs were started: %w", err)
	}
	return nil
}

func addReused(ctx context.Context, tx tenants.Tx, reused map[StepRunID][]*Origin) error {
	for from, origins := range reused {
		source, err := ReusedFrom(ctx, tx, from)
		if err != nil {
			return err
		}
		for _, origin := range origins {
			origin.Reused = source
		}
	}
	return nil
}

// ReusedFrom reads the step run whose output was taken over; nil where it is gone.
func ReusedFrom(ctx context.Context, tx tenants.Tx, step StepRunID) (*ReusedOrigin, error) {
	rows, _ := tx.Query(ctx, `
		SELECT r.id, p.name, r.number, s.id, coalesce(s.ended_at, s.created_at), s.cost_micros FROM step_runs s
		JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		JOIN pipelines p ON p.tenant_id = r.tenant_id AND p.id = r.pipeline_id
		WHERE s.tenant_id = $1 AND s.id = $2`, tx.Tenant, step)
	found, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[ReusedOrigin])
	if err != nil {
		return nil, fmt.Errorf("read whose output was taken over: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// addReviews reads who decided, and what they changed.
func (e *Engine) addReviews(ctx context.Context, tx tenants.Tx, steps []StepRunID, byRow map[StepRunID]*Origin) error {
	rows, _ := tx.Query(ctx, `
		SELECT DISTINCT ON (step_run_id) step_run_id, id FROM reviews
		WHERE tenant_id = $1 AND step_run_id = ANY ($2) ORDER BY step_run_id, round DESC`, tx.Tenant, steps)
	type asked struct {
		Step StepRunID
		ID   review.ID
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[asked])
	if err != nil {
		return fmt.Errorf("look for reviews: %w", err)
	}
	for _, one := range all {
		origin := byRow[one.Step]
		if origin == nil {
			continue
		}
		detail, err := e.Reviews.ByID(ctx, tx, one.ID)
		if err != nil {
			return err
		}
		origin.Review = &detail
	}
	return nil
}
