package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// ErrNoRun tells that the tenant has no such run.
var ErrNoRun = errors.New("no such run")

const runQuery = `
	SELECT ` + runColumns + ` FROM runs r ` + runJoins + ` WHERE `

// What scanRun reads of a run r, and what it takes to name its pipeline and who started it.
const (
	runColumns = `r.id, r.pipeline_id, p.name, r.version, r.number, r.name, r.state, r.sample, r.input_digest, r.result_digest,
		r.failure, r.started_by, coalesce(u.name, ''), r.created_at, r.ended_at, r.ended_by,
		r.reopened, r.origin_run, r.origin_step, r.parent_run, r.parent_step_run, r.root_run, r.depth`
	runJoins = `JOIN pipelines p ON p.tenant_id = r.tenant_id AND p.id = r.pipeline_id LEFT JOIN users u ON u.id = r.started_by`
)

// RunByID reads a run. It returns ErrNoRun where the tenant has none of that id.
func RunByID(ctx context.Context, tx tenants.Tx, id RunID) (Run, error) {
	return oneRun(ctx, tx, `r.tenant_id = $1 AND r.id = $2`, tx.Tenant, id)
}

// RunByKey reads the run that was started with a key. It returns ErrNoRun where there
// is none.
func RunByKey(ctx context.Context, tx tenants.Tx, key string) (Run, error) {
	return oneRun(ctx, tx, `r.tenant_id = $1 AND r.start_key = $2`, tx.Tenant, key)
}

func oneRun(ctx context.Context, tx tenants.Tx, where string, args ...any) (Run, error) {
	rows, _ := tx.Query(ctx, runQuery+where, args...)
	run, err := pgx.CollectExactlyOneRow(rows, scanRun)
	if errors.Is(err, pgx.ErrNoRows) {
		return run, ErrNoRun
	}
	if err != nil {
		return run, fmt.Errorf("read a run: %w", err)
	}
	return run, nil
}

func scanRun(row pgx.CollectableRow) (Run, error) { return scanRunBehind(row) }

// scanRunBehind reads a run that comes behind other columns.
func scanRunBehind(row pgx.CollectableRow, before ...any) (Run, error) {
	var r Run
	var input, result, failure []byte
	err := row.Scan(append(before, &r.ID, &r.PipelineID, &r.PipelineName, &r.Version, &r.Number, &r.Name, &r.State, &r.Sample, &input, &result,
		&failure, &r.StartedBy, &r.StartedName, &r.CreatedAt, &r.EndedAt, &r.EndedBy,
		&r.Reopened, &r.Origin, &r.OriginStep, &r.Parent, &r.ParentStep, &r.Root, &r.Depth)...)
	if err != nil {
		return r, err
	}
	r.Input, r.Result = digestFrom(input), digestFrom(result)
	r.Failure, err = failureFrom(failure)
	return r, err
}

func failureFrom(raw []byte) (*Failure, error) {
	if raw == nil {
		return nil, nil
	}
	failure := &Failure{}
	return failure, json.Unmarshal(raw, failure)
}

const stepRunQuery = `
	SELECT ` + stepRunColumns + ` FROM step_runs WHERE `

// What scanStepRun reads.
const stepRunColumns = `id, parent_id, step_id, kind, list, turn, state, attempt, fence, slice_id, chosen, score, input_digest, output_digest,
		failure, note, cost_micros, reused_from, coalesce(earlier_tries, 0), chain, begun_at, created_at, ended_at`

// stepRuns reads step runs by a condition, which may end in an order.
func stepRuns(ctx context.Context, tx tenants.Tx, where string, args ...any) ([]StepRun, error) {
	rows, _ := tx.Query(ctx, stepRunQuery+where, args...)
	found, err := pgx.CollectRows(rows, scanStepRun)
	if err != nil {
		return nil, fmt.Errorf("read step runs: %w", err)
	}
	return found, nil
}

func scanStepRun(row pgx.CollectableRow) (StepRun, error) {
	var s StepRun
	var input, output, failure, chain []byte
	err := row.Scan(&s.ID, &s.Parent, &s.StepID, &s.Kind, &s.List, &s.Turn, &s.State, &s.Attempt, &s.Fence, &s.Slice, &s.Chosen, &s.Score,
		&input, &output, &failure, &s.Note, &s.CostMicros, &s.ReusedFrom, &s.EarlierTries, &chain, &s.BegunAt, &s.CreatedAt, &s.EndedAt)
	if err != nil {
		return s, err
	}
	s.Input, s.Output = digestFrom(input), digestFrom(output)
	if s.Chain, err = chainFrom(chain); err != nil {
		return s, err
	}
	s.Failure, err = failureFrom(failure)
	return s, err
}

// Progress is a run with all that its page draws.
type Progress struct {
	Run     Run
	Program *pipeline.Program
	Steps   []StepRun          // in the order in which they began
	Waits   map[StepRunID]Wait // open ones
	Version uint64             // another one after every change of the run; compare with Changed
}

// ProgressOf reads a run's progress.
func ProgressOf(ctx context.Context, tx tenants.Tx, id RunID) (Progress, error) {
	var p Progress
	var err error
	if p.Run, err = RunByID(ctx, tx, id); err != nil {
		return p, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, p.Run.PipelineID, p.Run.Version)
	if err != nil {
		return p, err
	}
	p.Program = version.Program
	if p.Version, err = Changed(ctx, tx, id); err != nil {
		return p, err
	}
	if p.Steps, err = stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 ORDER BY created_at, id`, tx.Tenant, id); err != nil {
		return p, err
	}
	p.Waits, err = openWaits(ctx, tx, id)
	return p, err
}

// Changed gives a number that is another one after each change of the run or of its step
// runs, and says nothing else. It is cheap enough to be asked twice a second by each
// watcher: every commit of a run begins or ends an open step run, or changes the run.
func Changed(ctx context.Context, tx tenants.Tx, id RunID) (uint64, error) {
	var mark int64
	err := tx.QueryRow(ctx, `
		SELECT coalesce(bit_xor(hashtextextended(mark, 0)), 0) FROM (
			SELECT changed::text AS mark FROM runs WHERE tenant_id = $1 AND id = $2
			UNION ALL
			SELECT id::text || changed::text FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND state IN ('running', 'waiting')
			UNION ALL
			SELECT step_run_id::text || changed::text FROM live_texts WHERE tenant_id = $1 AND run_id = $2
		) marks`, tx.Tenant, id).Scan(&mark)
	if err != nil {
		return 0, fmt.Errorf("read a run's change: %w", err)
	}
	return uint64(mark), nil
}

func openWaits(ctx context.Context, tx tenants.Tx, id RunID) (map[StepRunID]Wait, error) {
	rows, _ := tx.Query(ctx, `
		SELECT `+waitColumns+` FROM waits
		WHERE tenant_id = $1 AND run_id = $2 AND state = 'open'`, tx.Tenant, id)
	list, err := pgx.CollectRows(rows, scanWait)
	if err != nil {
		return nil, fmt.Errorf("read a run's waits: %w", err)
	}
	waits := make(map[StepRunID]Wait, len(list))
	for _, wait := range list {
		waits[wait.StepRun] = wait
	}
	return waits, nil
}

const waitColumns = `id, step_run_id, kind, uncalled, state, due_at, reason, event_name, event_key, opened_at, closed_at`

func scanWait(row pgx.CollectableRow) (Wait, error) {
	var w Wait
	err := row.Scan(&w.ID, &w.StepRun, &w.Kind, &w.Uncalled, &w.State, &w.Due, &w.Reason, &w.EventName, &w.EventKey, &w.OpenedAt, &w.ClosedAt)
	return w, err
}

// AttemptsOf reads the ended tries of a step run, in order.
func AttemptsOf(ctx context.Context, tx tenants.Tx, id StepRunID) ([]Attempt, error) {
	rows, _ := tx.Query(ctx, `
		SELECT number, outcome, began_at, ended_at, failure, note, model, place, reask, followed, sent_digest, received_digest FROM tries
		WHERE tenant_id = $1 AND step_run_id = $2 ORDER BY number`, tx.Tenant, id)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Attempt, error) {
		var a Attempt
		var failure, sent, received []byte
		err := row.Scan(&a.Number, &a.Outcome, &a.BeganAt, &a.EndedAt, &failure, &a.Note,
			&a.Model, &a.Place, &a.Reask, &a.Followed, &sent, &received)
		if err != nil {
			return a, err
		}
		a.Sent, a.Received = digestFrom(sent), digestFrom(received)
		a.Failure, err = failureFrom(failure)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read a step's attempts: %w", err)
	}
	return found, nil
}
