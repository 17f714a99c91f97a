package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// StandingState is the one word for where a run is, worst open thing first.
type StandingState string

// The standings, from what needs somebody most to what needs nobody.
const (
	StandingFailed    StandingState = "failed"
	StandingCapped    StandingState = "capped"
	StandingPerson    StandingState = "person"
	StandingRetrying  StandingState = "retrying"
	StandingWaiting   StandingState = "waiting"
	StandingRunning   StandingState = "running"
	StandingQueued    StandingState = "queued"
	StandingPaused    StandingState = "paused"
	StandingCompleted StandingState = "completed"
	StandingCancelled StandingState = "cancelled"
)

// Line is a run as lists show it.
type Line struct {
	Run        Run
	Standing   StandingState
	StepID     string // the step that the standing is about; empty where it is about none
	StepName   string
	Since      time.Time // since when it stands so
	Wait       WaitKind  // what the step waits for; empty where it does not
	Due        *time.Time
	Reason     string // why a wait was opened
	Uncalled   bool   // of a WaitRetry: the call was not made, since a limit of ours left no room for it
	EventName  string // of the event that the step waits for
	EventKey   string
	Attempt    int
	CostMicros int64
	Open       Branches       // how many branches are open, and what they do
	Verdict    review.Outcome // how the last review of a completed run ended; empty without one
	VerdictBy  string         // who gave it; empty where silence did
}

// LineByID reads one run as lists show it. It returns ErrNoRun where the tenant has
// none of that id.
func LineByID(ctx context.Context, tx tenants.Tx, id RunID) (Line, error) {
	rows, _ := tx.Query(ctx, `
		WITH page AS (SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.id = $2)`+lineQuery, tx.Tenant, id)
	line, err := pgx.CollectExactlyOneRow(rows, scanLine)
	if errors.Is(err, pgx.ErrNoRows) {
		return line, ErrNoRun
	}
	if err != nil {
		return line, fmt.Errorf("read a run: %w", err)
	}
	lines := []Line{line}
	err = nameSteps(ctx, tx, lines)
	return lines[0], err
}

// NewestRuns reads the newest run of each pipeline that has one. By numbers, since only one
// index has their order: by ids the planner may go through the runs of all pipelines for one
// that has none.
func NewestRuns(ctx context.Context, tx tenants.Tx) (map[pipeline.ID]Line, error) {
	rows, _ := tx.Query(ctx, `
		WITH page AS (
			SELECT r.* FROM pipelines p CROSS JOIN LATERAL (
				SELECT r.* FROM runs r WHERE r.tenant_id = p.tenant_id AND r.pipeline_id = p.id ORDER BY r.number DESC LIMIT 1
			) r
			WHERE p.tenant_id = $1
		)`+lineQuery, tx.Tenant)
	lines, err := pgx.CollectRows(rows, scanLine)
	if err != nil {
		return nil, fmt.Errorf("read the newest runs: %w", err)
	}
	newest := make(map[pipeline.ID]Line, len(lines))
	for _, line := range lines {
		newest[line.Run.PipelineID] = line
	}
	return newest, nil
}

// lineQuery adds to each run of the page its worst open step run with its wait, what
// its calls cost, how many branches are open, and when a step of it last ended or was
// woken. Nothing in it reads all steps of a run; OFFSET and LIMIT where one row is all
// there is keep the planner from turning a look-up for each run into a join of whole
// tables, which the policies' conditions make it think cheap.
const lineQuery = `
	SELECT r.id, r.pipeline_id, p.name, r.version, r.number, r.name, r.state, r.sample, r.input_digest, r.result_digest,
		r.failure, r.started_by, coalesce(u.name, ''), r.created_at, r.ended_at, r.ended_by,
		coalesce(s.step_id, ''), coalesce(s.state, ''), coalesce(s.kind, ''), s.begun_at, coalesce(s.attempt, 0),
		coalesce(w.kind, ''), w.due_at, coalesce(w.reason, ''), coalesce(w.uncalled, false), coalesce(w.event_name, ''), coalesce(w.event_key, ''), w.opened_at, c.cost, greatest(e.ended, s.woken),
		b.capped, b.person, b.retrying, b.waiting, b.running, b.ready,
		coalesce(v.outcome, ''), coalesce(v.decided_by, '')
	FROM page r
	JOIN pipelines p ON p.tenant_id = r.tenant_id AND p.id = r.pipeline_id
	LEFT JOIN users u ON u.id = r.started_by
	CROSS JOIN LATERAL (
		SELECT coalesce(sum(c.spent_micros), 0)::bigint AS cost FROM balances c
		WHERE c.tenant_id = r.tenant_id AND c.scope = 'run' AND c.scope_id = r.id::text
	) c
	CROSS JOIN LATERAL (
		SELECT max(e.ended_at) AS ended FROM (
			SELECT e.ended_at FROM step_runs e WHERE e.tenant_id = r.tenant_id AND e.run_id = r.id ORDER BY e.changed DESC LIMIT 10) e
	) e
	CROSS JOIN LATERAL (` + branchQuery + `) b
	CROSS JOIN LATERAL (
		SELECT coalesce((
			SELECT w.step_run_id FROM waits w WHERE w.tenant_id = r.tenant_id AND w.run_id = r.id AND w.state = 'open'
			ORDER BY array_position(ARRAY['cap', 'review', 'retry'], w.kind), w.step_run_id LIMIT 1
		), (
			SELECT s.id FROM slices l JOIN step_runs s ON s.slice_id = l.id AND s.state IN ('running', 'waiting')
			WHERE l.tenant_id = r.tenant_id AND l.run_id = r.id AND s.tenant_id = r.tenant_id AND s.kind NOT IN ` + groupKinds + `
			ORDER BY s.id LIMIT 1
		), (
			SELECT s.id FROM step_runs s
			WHERE s.tenant_id = r.tenant_id AND s.run_id = r.id AND s.state IN ('running', 'waiting') AND s.kind NOT IN ` + groupKinds + ` AND s.` + notCaught + `
			ORDER BY s.id LIMIT 1
		)) AS id OFFSET 0
	) worst
	LEFT JOIN LATERAL (
		SELECT s.step_id, s.state, s.kind, s.begun_at, s.attempt, (
			SELECT max(o.closed_at) FROM waits o
			WHERE s.state = 'waiting' AND o.tenant_id = s.tenant_id AND o.run_id = s.run_id AND o.step_run_id = s.id) AS woken
		FROM step_runs s WHERE s.tenant_id = r.tenant_id AND s.id = worst.id LIMIT 1
	) s ON true
	LEFT JOIN LATERAL (
		SELECT w.* FROM waits w WHERE w.tenant_id = r.tenant_id AND w.step_run_id = worst.id AND w.state = 'open' LIMIT 1
	) w ON true
	LEFT JOIN LATERAL (
		SELECT v.outcome, (
			SELECT d.name FROM decisions d WHERE d.tenant_id = v.tenant_id AND d.review_id = v.id ORDER BY d.id DESC LIMIT 1) AS decided_by
		FROM reviews v
		WHERE r.state = 'completed' AND v.tenant_id = r.tenant_id AND v.run_id = r.id AND v.state = 'closed'
		ORDER BY v.id DESC LIMIT 1
	) v ON true`

func scanLine(row pgx.CollectableRow) (Line, error) {
	var l Line
	var input, result, failure []byte
	var state, kind string
	var begun, opened, moved *time.Time
	r := &l.Run
	err := row.Scan(&r.ID, &r.PipelineID, &r.PipelineName, &r.Version, &r.Number, &r.Name, &r.State, &r.Sample, &input, &result,
		&failure, &r.StartedBy, &r.StartedName, &r.CreatedAt, &r.EndedAt, &r.EndedBy,
		&l.StepID, &state, &kind, &begun, &l.Attempt, &l.Wait, &l.Due, &l.Reason, &l.Uncalled, &l.EventName, &l.EventKey, &opened, &l.CostMicros, &moved,
		&l.Open.Capped, &l.Open.Person, &l.Open.Retrying, &l.Open.Waiting, &l.Open.Running, &l.Open.Ready,
		&l.Verdict, &l.VerdictBy)
	if err != nil {
		return l, err
	}
	r.Input, r.Result = digestFrom(input), digestFrom(result)
	if r.Failure, err = failureFrom(failure); err != nil {
		return l, err
	}
	l.Standing = standing(r.State, StepState(state), l.Wait)
	if l.Uncalled && l.Standing == StandingRetrying {
		l.Standing = StandingWaiting
	}
	l.Since = since(*r, l.Standing, begun, opened, moved)
	if r.Failure != nil {
		l.StepID = r.Failure.StepID
	}
	return l, nil
}

// standing is the one word for a run with this worst open step run.
func standing(run RunState, step StepState, wait WaitKind) StandingState {
	switch run {
	case RunCompleted:
		return StandingCompleted
	case RunFailed:
		return StandingFailed
	case RunCancelled, RunCancelling:
		return StandingCancelled
	case RunPaused, RunPausing:
		return StandingPaused
	}
	switch wait {
	case WaitCap:
		return StandingCapped
	case WaitReview:
		return StandingPerson
	case WaitRetry:
		return StandingRetrying
	case "":
		if step == StepRunning {
			return StandingRunning
		}
		return StandingQueued
	}
	return StandingWaiting
}

// since is when it came to stand so. A run that is about to go on does so since its
// last step ended, or since what it waited for came.
func since(run Run, stands StandingState, begun, opened, moved *time.Time) time.Time {
	switch {
	case run.EndedAt != nil:
		return *run.EndedAt
	case stands == StandingQueued && moved != nil:
		return *moved
	case opened != nil:
		return *opened
	case begun != nil:
		return *begun
	}
	return run.CreatedAt
}

// nameSteps fills in the names of the steps that the lines are about.
func nameSteps(ctx context.Context, tx tenants.Tx, lines []Line) error {
	for i := range lines {
		if lines[i].StepID == "" {
			continue
		}
		version, err := pipeline.VersionByNumber(ctx, tx, lines[i].Run.PipelineID, lines[i].Run.Version)
		if err != nil {
			return err
		}
		if node := version.Program.Node(lines[i].StepID); node != nil {
			lines[i].StepName = node.Step.Name
		}
	}
	return nil
}

// Counts are how many runs stand how, for the home page.
type Counts struct {
	Working, Person, Capped, FailedToday int
}

// CountRuns counts the tenant's open runs, and those that failed since a time.
func CountRuns(ctx context.Context, tx tenants.Tx, failedSince time.Time) (Counts, error) {
	var c Counts
	err := tx.QueryRow(ctx, `
		SELECT
			(SELECT count(*) FROM runs WHERE tenant_id = $1 AND ended_at IS NULL)
				- (SELECT count(DISTINCT run_id) FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind IN ('review', 'cap')),
			(SELECT count(DISTINCT run_id) FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind = 'review'),
			(SELECT count(DISTINCT run_id) FROM waits WHERE tenant_id = $1 AND state = 'open' AND kind = 'cap'),
			(SELECT count(*) FROM runs WHERE tenant_id = $1 AND created_at IS NOT NULL AND state = 'failed' AND ended_at >= $2)`,
		tx.Tenant, failedSince).Scan(&c.Working, &c.Person, &c.Capped, &c.FailedToday)
	if err != nil {
		return c, fmt.Errorf("count runs: %w", err)
	}
	return c, nil
}
