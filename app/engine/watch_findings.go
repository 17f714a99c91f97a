package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// FindingsKept is how long the record of a finding is kept after its last time.
const FindingsKept = 30 * 24 * time.Hour

// Finding is the record of one thing that stood still in one way.
type Finding struct {
	Kind     StuckKind
	Tenant   tenants.ID
	Name     string // of the tenant
	Run      RunID  // zero where no run is known
	Times    int    // how often it was found
	Repaired bool   // the last time
	Error    string // why it was not; for whoever runs the installation
	Worker   string // which found it last
	FirstAt  time.Time
	LastAt   time.Time
}

// StuckKinds lists the kinds of stuck that the watchdog looks for.
func StuckKinds() []StuckKind {
	var kinds []StuckKind
	for _, look := range stuckQueries {
		kinds = append(kinds, look.kind)
	}
	return kinds
}

// record keeps what was found. What went on by itself, as after another worker's
// repair, is not worth a line.
func (w *Worker) record(ctx context.Context, found []Stuck) error {
	found = slices.DeleteFunc(slices.Clone(found), func(f Stuck) bool { return !f.Repaired && f.trouble == nil })
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b Stuck) int { // two watchdogs lock rows in one order
		return cmp.Or(cmp.Compare(a.Run.String(), b.Run.String()), cmp.Compare(a.subject().String(), b.subject().String()), cmp.Compare(a.Kind, b.Kind))
	})
	batch := &pgx.Batch{}
	for _, f := range found {
		queueFinding(batch, f, w.name)
	}
	return w.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("record what the watchdog found: %w", err)
		}
		return nil
	})
}

func queueFinding(batch *pgx.Batch, f Stuck, worker string) {
	trouble := ""
	if f.trouble != nil {
		trouble = f.trouble.Error()
	}
	batch.Queue(`
		INSERT INTO watch_findings AS w (tenant_id, id, kind, run_id, subject_id, repaired, error, worker)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant_id, kind, run_id, subject_id)
		DO UPDATE SET times = w.times + 1, repaired = excluded.repaired, error = excluded.error, worker = excluded.worker, last_at = now()`,
		f.Tenant, tenants.NewID[Finding](), f.Kind, f.Run, f.subject(), f.Repaired, trouble, worker)
}

// subject is what stood still, within its run.
func (s Stuck) subject() StepRunID {
	if s.Step.IsZero() {
		return StepRunID(s.Slice)
	}
	return s.Step
}

// Findings reads what was found since a time: first what could not be mended, then the
// newest.
func Findings(ctx context.Context, tx tenants.SystemTx, since time.Time, limit int) ([]Finding, error) {
	rows, _ := tx.Query(ctx, findingQuery+`
		WHERE f.last_at >= $1 ORDER BY f.repaired, f.last_at DESC, f.id LIMIT $2`, since, limit)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("read what the watchdog found: %w", err)
	}
	return found, nil
}

// FindingsOf reads what was found about one run, oldest first, at most a handful.
func FindingsOf(ctx context.Context, tx tenants.Tx, run RunID) ([]Finding, error) {
	rows, _ := tx.Query(ctx, findingQuery+`
		WHERE f.tenant_id = $1 AND f.run_id = $2 ORDER BY f.last_at, f.id LIMIT 10`, tx.Tenant, run)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Finding])
	if err != nil {
		return nil, fmt.Errorf("read what the watchdog found about a run: %w", err)
	}
	return found, nil
}

const findingQuery = `
	SELECT f.kind, f.tenant_id, t.name, f.run_id, f.times, f.repaired, f.error, f.worker, f.first_at, f.last_at
	FROM watch_findings f JOIN tenants t ON t.id = f.tenant_id`

// FindingCount is how many things were found, and how many of them still stood when
// they were last looked at.
type FindingCount struct{ Found, Unrepaired int }

// CountFindings counts what was found since a time.
func CountFindings(ctx context.Context, tx tenants.SystemTx, since time.Time) (FindingCount, error) {
	var c FindingCount
	err := tx.QueryRow(ctx, `
		SELECT count(*), count(*) FILTER (WHERE NOT repaired) FROM watch_findings WHERE last_at >= $1`, since).Scan(&c.Found, &c.Unrepaired)
	if err != nil {
		return c, fmt.Errorf("count what the watchdog found: %w", err)
	}
	return c, nil
}

// ForgetFindings removes the records that are too old to matter.
func (w *Worker) ForgetFindings(ctx context.Context, tx tenants.SystemTx) error {
	_, err := tx.Exec(ctx, `DELETE FROM watch_findings WHERE last_at < now() - $1::interval`, FindingsKept)
	if err != nil {
		return fmt.Errorf("forget what the watchdog found long ago: %w", err)
	}
	return nil
}
