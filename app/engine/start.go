package engine

import (
	"context"
	"errors"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// StartRequest is what a run is started with.
type StartRequest struct {
	Pipeline pipeline.ID
	Input    []byte                // JSON record of the input fields
	Files    []pipeline.StoredFile // whose digests the input names
	Sample   bool                  // the input is the pipeline's own sample
	Fresh    bool                  // no step takes an earlier answer
	Priority int16                 // within the tenant: 1, the most urgent, to 4; 0 means 2
	By       tenants.UserID        // zero where nobody started it by hand
	Actor    tenants.Actor         // who the audit log names; without a kind nothing is written there
	Key      string                // a second start with the same key is the same run
	id       RunID                 // of a run that a step starts; zero: made when it is added
	again    *rerun                // what it begins with where it does an older run again
}

// ErrNotLive tells that the pipeline has no published version to run.
var ErrNotLive = errors.New("the pipeline has no live version")

// Started is a run and whether an earlier start had begun it.
type Started struct {
	Run    Run
	Before bool
}

// Start begins a run of the pipeline's live version. Where a run with the same key was
// started before, that run is returned and nothing is changed.
func (e *Engine) Start(ctx context.Context, tx tenants.Tx, request StartRequest) (Started, error) {
	one := &starting{StartRequest: request}
	if err := e.startAll(ctx, tx, []*starting{one}); err != nil {
		return Started{}, err
	}
	return one.started, one.err
}

// StartNow is Start in a transaction of its own, which the tenant's starts that come at
// the same time share.
func (e *Engine) StartNow(ctx context.Context, tenant tenants.ID, request StartRequest) (Started, error) {
	one := &starting{StartRequest: request}
	if err := e.starts.do(tenant, one); err != nil {
		return Started{}, fmt.Errorf("start a run: %w", err)
	}
	return one.started, one.err
}

const normalPriority = 2

func (r StartRequest) priority() int16 {
	if r.Priority == 0 {
		return normalPriority
	}
	return r.Priority
}

// runName fills in the pipeline's text for naming runs, cut to what a list can show.
func runName(ctx context.Context, program *pipeline.Program, fallback string, input []byte) (string, error) {
	decoded, err := expr.DecodeJSON(input)
	if err != nil {
		return "", fmt.Errorf("read the input: %w", err)
	}
	text := program.RunName()
	if text == nil {
		return fallback, nil
	}
	name, err := text.Render(ctx, expr.Scope{"input": decoded, "steps": map[string]any{}, "run": map[string]any{}})
	if err != nil || expr.Plain(name) == "" {
		return fallback, nil // a name is no reason to refuse a run
	}
	return expr.Preview([]byte(expr.Plain(name)), maxName), nil
}

const maxName = 200

// openReviews asks the people of the reviews that a decision opened.
func (d *drive) openReviews(ctx context.Context, tx tenants.Tx, changes []change) error {
	for _, entry := range changes {
		open, ok := entry.(openReview)
		if !ok {
			continue
		}
		question, err := d.question(ctx, tx, open)
		if err != nil {
			return err
		}
		if _, err := d.Reviews.Open(ctx, tx, question); err != nil {
			return err
		}
	}
	return nil
}
