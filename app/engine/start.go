package engine

import (
	"context"
	"errors"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// StartRequest is what a run is started with.
type StartRequest struct {
	Pipeline pipeline.ID
	Input    []byte                // JSON record of the input fields
	Files    []pipeline.StoredFile // whose digests the input names
	Sample   bool                  // the input is the pipeline's own sample
	Priority int16                 // within the tenant: 1, the most urgent, to 4; 0 means 2
	By       tenants.UserID        // zero where nobody started it by hand
	Key      string                // a second start with the same key is the same run
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
	batch := &tenants.Batch{}
	queueKeyLock(batch, tx.Tenant, request.Key)
	earlier := queueRuns(batch, `r.tenant_id = $1 AND r.start_key = $2`, tx.Tenant, request.Key)
	live := pipeline.QueueLive(batch, tx.Tenant, request.Pipeline)
	if err := tx.Send(ctx, batch); err != nil {
		return Started{}, fmt.Errorf("look before a start: %w", err)
	}
	if len(*earlier) > 0 {
		return Started{Run: (*earlier)[0], Before: true}, nil
	}
	run, err := e.start(ctx, tx, request, *live)
	return Started{Run: run}, err
}

// queueKeyLock makes a second start with the same key wait for the first, instead of
// failing on the unique key.
func queueKeyLock(b *tenants.Batch, tenant tenants.ID, key string) {
	b.Queue(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, tenant.String()+key)
}

func (e *Engine) start(ctx context.Context, tx tenants.Tx, request StartRequest, live pipeline.Live) (Run, error) {
	switch {
	case !live.Found:
		return Run{}, pipeline.ErrNotFound
	case live.Version == 0:
		return Run{}, ErrNotLive
	}
	version, err := pipeline.VersionByNumber(ctx, tx, request.Pipeline, live.Version)
	if err != nil {
		return Run{}, err
	}
	name, err := runName(ctx, version.Program, live.Name, request.Input)
	if err != nil {
		return Run{}, err
	}
	if err := e.checkOpenRuns(ctx, tx); err != nil {
		return Run{}, err
	}
	return e.count(ctx, tx, request, version, name)
}

// count gives the run its number, under the lock of its pipeline, and adds it. Unless
// the pipeline's limit asks for a look in between, that is one round trip: starts of a
// pipeline wait for each other that long.
func (e *Engine) count(ctx context.Context, tx tenants.Tx, request StartRequest, version pipeline.Version, name string) (Run, error) {
	batch := &tenants.Batch{}
	pipeline.QueueRunNumber(batch, tx.Tenant, request.Pipeline)
	limit := version.Document.Concurrency
	if limit != nil {
		if err := tx.Send(ctx, batch); err != nil {
			return Run{}, fmt.Errorf("count a run: %w", err)
		}
		batch = &tenants.Batch{}
	}
	how, err := e.admit(ctx, tx, request.Pipeline, limit)
	if err != nil {
		return Run{}, err
	}
	started, err := e.queueRun(batch, tx, request, version, name, how)
	if err != nil {
		return Run{}, err
	}
	if err := tx.Send(ctx, batch); err != nil {
		return Run{}, fmt.Errorf("start a run: %w", err)
	}
	if len(*started) != 1 {
		return Run{}, ErrNoRun
	}
	return (*started)[0], nil
}

// queueRun adds the run with all that belongs to it, and reads it once more.
func (e *Engine) queueRun(b *tenants.Batch, tx tenants.Tx, request StartRequest, version pipeline.Version, name string, how entry) (*[]Run, error) {
	id := tenants.NewID[Run]() // with a limit it is made under the pipeline's lock, so that ids have the order of starts
	b.Queue(`
		INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, priority, sample, input_digest, started_by, start_key,
			created_at, failure, ended_by, ended_at)
		SELECT $1, $2, $3, $4, p.run_count, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15
		FROM pipelines p WHERE p.tenant_id = $1 AND p.id = $3`,
		tx.Tenant, id, request.Pipeline, version.Number, name, string(how.state), request.priority(), request.Sample,
		DigestOf(request.Input).bytes(), request.By, request.Key, tx.Now, how.failure.json(), how.endedBy, how.endedAt(tx.Now))
	queueValue(b, tx.Tenant, id, mediaJSON, request.Input)
	for _, file := range request.Files {
		queueValue(b, tx.Tenant, id, file.Type, file.Data)
	}
	if err := queueRunCap(b, id, version.Document); err != nil {
		return nil, err
	}
	if how.state == RunRunning {
		queueSlice(b, tx.Tenant, slice{
			id: tenants.NewID[slice](), run: id, semantics: version.Document.Semantics, priority: request.priority(),
		})
		tx.AfterCommit(e.nudge)
	}
	return queueRuns(b, `r.tenant_id = $1 AND r.id = $2`, tx.Tenant, id), nil
}

const normalPriority = 2

func (r StartRequest) priority() int16 {
	if r.Priority == 0 {
		return normalPriority
	}
	return r.Priority
}

// queueRunCap gives the run the cap that its pipeline says, for either kind of funds.
func queueRunCap(batch *tenants.Batch, id RunID, document pipeline.Document) error {
	if document.RunCap == nil {
		return nil
	}
	limit := ledger.Micros(*document.RunCap)
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		if err := ledger.QueueCap(batch, ledger.Cap{Place: ledger.OfRun(ledger.RunID(id)), Funds: funds, Limit: &limit}); err != nil {
			return fmt.Errorf("set the cap of a run: %w", err)
		}
	}
	return nil
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
