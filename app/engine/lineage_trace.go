package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// tracer follows values back. It looks rows up as decisions do, by the frames around the
// place where a value was read, a round trip for all that a step back needs.
type tracer struct {
	*decider
	ctx  context.Context
	tx   tenants.Tx
	rows map[StepRunID]StepRun

	order []StepRunID              // whose origins are told
	asked map[StepRunID][]fieldKey // the fields of each that are asked for
	reads map[fieldKey][]Read
	parts map[StepRunID]int
	count int // of all reads
	cut   bool
}

// fieldKey names a field of what a row gave; "" all of it.
type fieldKey struct {
	row   StepRunID
	field string
}

func newTracer(ctx context.Context, tx tenants.Tx, id RunID) (*tracer, error) {
	run, err := RunByID(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, run.PipelineID, run.Version)
	if err != nil {
		return nil, err
	}
	found := scope{found: map[place]*found{}}
	return &tracer{
		decider: &decider{moment: moment{program: version.Program, run: run, scope: found}},
		ctx:     ctx, tx: tx, rows: map[StepRunID]StepRun{}, asked: map[StepRunID][]fieldKey{},
		reads: map[fieldKey][]Read{}, parts: map[StepRunID]int{},
	}, nil
}

// follow goes back from a row, step by step, each further one once.
func (t *tracer) follow(from StepRunID) error {
	t.order = []StepRunID{from}
	var next []fieldKey
	for _, field := range pipeline.Outputs(*t.program.Node(t.rows[from].StepID).Step) {
		next = append(next, fieldKey{from, field.Name})
	}
	if len(next) == 0 {
		next = []fieldKey{{row: from}}
	}
	t.asked[from] = next
	for len(next) > 0 {
		readings, err := t.settle(func() ([]reading, error) { return t.readings(next) })
		if err != nil {
			return err
		}
		next = t.take(readings)
	}
	return nil
}

// take notes what was read, and gives what is to be followed from there.
func (t *tracer) take(readings []reading) []fieldKey {
	var next []fieldKey
	for _, r := range readings {
		if t.count++; t.count > maxReads {
			t.cut = true
			return nil
		}
		t.reads[r.by] = append(t.reads[r.by], r.Read)
		if r.Row.IsZero() {
			continue
		}
		to := fieldKey{r.Row, r.follows}
		if !slices.Contains(t.order, r.Row) {
			if len(t.order) == maxOrigins {
				t.cut = true
				continue
			}
			t.order = append(t.order, r.Row)
		}
		if !slices.Contains(t.asked[r.Row], to) {
			t.asked[r.Row] = append(t.asked[r.Row], to)
			next = append(next, to)
		}
	}
	return next
}

// settle asks until all rows that are needed for it are there.
func (t *tracer) settle(ask func() ([]reading, error)) ([]reading, error) {
	for {
		t.missing = nil
		readings, err := ask()
		if !errors.Is(err, errMissing) && len(t.missing) == 0 {
			return readings, err
		}
		if err := t.load(); err != nil {
			return nil, err
		}
	}
}

// noRow is found where nothing stands.
var noRow = &found{}

// load reads the rows at the places that are missing, and those around them.
func (t *tracer) load() error {
	var frames []StepRunID
	var steps []string
	var turns []int
	for _, w := range t.missing {
		frames, steps, turns = append(frames, w.place.frame), append(steps, w.place.step), append(turns, w.place.turn)
		t.scope.found[w.place] = noRow
	}
	found, _ := t.tx.Query(t.ctx, `
		SELECT `+stepRunColumns+` FROM unnest($3::uuid[], $4::text[], $5::integer[]) AS w (frame, named, nth) CROSS JOIN LATERAL (
			SELECT s.* FROM step_runs s
			WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.step_id = w.named AND s.parent_id = w.frame AND s.turn = w.nth
			UNION ALL
			SELECT s.* FROM step_runs s
			WHERE w.frame IS NULL AND s.tenant_id = $1 AND s.run_id = $2 AND s.step_id = w.named AND s.parent_id IS NULL) s`,
		t.tx.Tenant, t.run.ID, frames, steps, turns)
	rows, err := pgx.CollectRows(found, scanStepRun)
	if err != nil {
		return fmt.Errorf("look for what was read: %w", err)
	}
	for _, row := range rows {
		t.keep(row)
	}
	return nil
}

// keep makes a row known where it stands.
func (t *tracer) keep(row StepRun) {
	t.rows[row.ID] = row
	f := foundRow(row, value{digest: row.Output})
	t.scope.found[place{row.Parent, row.StepID, row.Turn}] = &f
}

// loadChain reads a row and all around it.
func (t *tracer) loadChain(id StepRunID) error {
	v := View{Run: t.run}
	chain, err := v.chain(t.ctx, t.tx, id)
	for _, row := range chain {
		t.keep(row)
	}
	return err
}

// around are the rows around one, outermost first. They are known, since whoever comes
// to a row comes by them.
func (t *tracer) around(row StepRun) []StepRun {
	var out []StepRun
	for id := row.Parent; !id.IsZero(); {
		parent, ok := t.rows[id]
		if !ok {
			break
		}
		out = append([]StepRun{parent}, out...)
		id = parent.Parent
	}
	return out
}

// frameOf is the frame around a row, within the one that the row itself is.
func (t *tracer) frameOf(row StepRun) *frame {
	around := t.around(row)
	slices.Reverse(around)
	return t.frames(around)
}

func (t *tracer) within(row StepRun) *frame {
	return &frame{row: row, insert: -1, outer: t.frameOf(row)}
}

// rowAt is the row at a place; zero where nothing stands there.
func (t *tracer) rowAt(p place) (StepRunID, error) {
	f, err := t.row(p)
	if err != nil {
		return StepRunID{}, err
	}
	return f.id, nil
}

// find is the row of the step that a reference reads at a position.
func (t *tracer) find(ref expr.Ref, where position) (StepRunID, error) {
	target := t.program.Node(ref.Path[0])
	if target == nil {
		return StepRunID{}, nil
	}
	p, ok, err := t.locate(target, where)
	if err != nil || !ok {
		return StepRunID{}, err
	}
	return t.rowAt(p)
}

// firstDone is the first item of a list that gave something, and how many did.
func (t *tracer) firstDone(list StepRun) (StepRunID, error) {
	if first, known := t.firsts(list.ID); known {
		return first, nil
	}
	rows, _ := t.tx.Query(t.ctx, `
		SELECT (SELECT count(*) FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'done'), (
			SELECT id FROM step_runs WHERE tenant_id = $1 AND parent_id = $2 AND state = 'done' ORDER BY turn LIMIT 1)`, t.tx.Tenant, list.ID)
	type first struct {
		Count int
		ID    StepRunID
	}
	f, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[first])
	if err != nil {
		return f.ID, fmt.Errorf("look for the first item of a list: %w", err)
	}
	t.parts[list.ID] = f.Count
	if f.ID.IsZero() {
		return f.ID, nil
	}
	return f.ID, t.loadChain(f.ID)
}

// firsts is the first item of a list that was looked for before.
func (t *tracer) firsts(list StepRunID) (StepRunID, bool) {
	if _, looked := t.parts[list]; !looked {
		return StepRunID{}, false
	}
	var first *StepRun
	for _, row := range t.rows {
		if row.Parent == list && row.State == StepDone && (first == nil || row.Turn < first.Turn) {
			first = &row
		}
	}
	if first == nil {
		return StepRunID{}, true
	}
	return first.ID, true
}
