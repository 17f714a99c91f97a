package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// View is a run, or one part of it, as a page draws it: as many rows as there are steps
// in the pipeline at most, however often they ran. A list's items are counts, and of a
// loop's rounds only a few are there, with the steps of the newest.
type View struct {
	Run     Run
	Program *pipeline.Program
	Part    *StepRun  // the item, round or lane that is looked at; nil for the whole run
	Around  []StepRun // what Part stands in, outermost first: groups and their parts in turn
	Steps   []StepRun // in the order in which they began
	Groups  map[StepRunID]GroupSize
	Waits   map[StepRunID]Wait // open ones of Steps
	Outputs map[Digest][]byte  // beginnings of what loops, branches side by side and stops gave
	Open    Branches
	Version uint64 // grows with every change of the run; compare with Changed
}

// ErrNoPart tells that the run has no such item, round or branch, or no such group.
var ErrNoPart = errors.New("no such part of a run")

// mostViewed bounds the rows of one view. It is more than a pipeline can have steps,
// each with the few rounds or branches that are shown around it.
const mostViewed = 4000

// ViewOf reads a run, or one part of it where part is not zero. It returns ErrNoRun or
// ErrNoPart.
func ViewOf(ctx context.Context, tx tenants.Tx, id RunID, part StepRunID) (View, error) {
	var v View
	var err error
	if v.Run, err = RunByID(ctx, tx, id); err != nil {
		return v, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, v.Run.PipelineID, v.Run.Version)
	if err != nil {
		return v, err
	}
	v.Program = version.Program
	if v.Version, err = Changed(ctx, tx, id); err != nil {
		return v, err
	}
	if !part.IsZero() {
		if err := v.readPart(ctx, tx, part); err != nil {
			return v, err
		}
	}
	return v, v.readSteps(ctx, tx)
}

// readPart reads the part and what it stands in.
func (v *View) readPart(ctx context.Context, tx tenants.Tx, part StepRunID) error {
	chain, err := v.chain(ctx, tx, part)
	if err != nil {
		return err
	}
	if len(chain) == 0 || !IsPart(chain[len(chain)-1].Kind) {
		return ErrNoPart
	}
	v.Part, v.Around = &chain[len(chain)-1], chain[:len(chain)-1]
	return nil
}

// chain reads a row of the run and all rows around it, the outermost first. A row of
// another run, or of none, has no chain.
func (v *View) chain(ctx context.Context, tx tenants.Tx, row StepRunID) ([]StepRun, error) {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND id IN (
		WITH RECURSIVE up AS (
			SELECT id, parent_id FROM step_runs WHERE tenant_id = $1 AND run_id = $2 AND id = $3
			UNION ALL
			SELECT p.id, p.parent_id FROM up JOIN step_runs p ON p.tenant_id = $1 AND p.id = up.parent_id
		) SELECT id FROM up)`, tx.Tenant, v.Run.ID, row)
	return inward(rows), err
}

// inward orders a chain of rows from the outermost to the innermost.
func inward(rows []StepRun) []StepRun {
	var out []StepRun
	var parent StepRunID
	for range rows {
		for _, row := range rows {
			if row.Parent == parent {
				out, parent = append(out, row), row.ID
				break
			}
		}
	}
	return out
}

// readSteps reads the rows that the page draws and what belongs to them.
func (v *View) readSteps(ctx context.Context, tx tenants.Tx) error {
	var err error
	if v.Steps, err = v.shown(ctx, tx); err != nil {
		return err
	}
	var all, lists, parts []StepRunID
	var outputs []Digest
	for _, step := range v.Steps {
		all = append(all, step.ID)
		if IsPart(step.Kind) {
			parts = append(parts, step.ID)
		}
		switch step.Kind {
		case pipeline.KindEach:
			lists = append(lists, step.ID)
		case pipeline.KindRepeat, pipeline.KindParallel, pipeline.KindStop, KindLane:
			outputs = append(outputs, step.Output)
		}
	}
	if v.Outputs, err = beginnings(ctx, tx, outputs); err != nil {
		return err
	}
	if err := v.readCosts(ctx, tx, parts); err != nil {
		return err
	}
	if v.Groups, err = groupSizes(ctx, tx, v.Run.ID, lists); err != nil {
		return err
	}
	if v.Waits, err = openWaitsAt(ctx, tx, all); err != nil {
		return err
	}
	v.Open, err = branchesOf(ctx, tx, v.Run.ID)
	return err
}

// readCosts adds to the rounds and branches that are shown, and to the part itself, what
// was spent in them.
func (v *View) readCosts(ctx context.Context, tx tenants.Tx, parts []StepRunID) error {
	if v.Part != nil {
		parts = append(parts, v.Part.ID)
	}
	costs, err := partCosts(ctx, tx, parts)
	for i := range v.Steps {
		if cost, ok := costs[v.Steps[i].ID]; ok {
			v.Steps[i].CostMicros = cost
		}
	}
	if v.Part != nil {
		v.Part.CostMicros = costs[v.Part.ID]
	}
	return err
}

// topRows and partRows are where a view begins, each found by an index of its own. $3
// is the ids of the steps at the top, or the part.
const (
	topRows  = `s.parent_id IS NULL AND s.step_id = ANY ($3)`
	partRows = `s.parent_id = $3`
)

// shownRows descends from the rows where the view begins, which {begin} chooses, into
// groups, but not into the items of lists, nor into any round but the newest. Of the rounds themselves the
// first, the best, and the last three are shown.
const shownRows = `
	WITH RECURSIVE shown AS (
		SELECT s.id, s.kind, s.chosen, s.kind <> 'each' OR s.` + caughtRow + ` AS opens FROM step_runs s
		WHERE s.tenant_id = $1 AND s.run_id = $2 AND {begin}
		UNION ALL
		SELECT c.id, c.kind, c.chosen, (c.kind <> 'each' OR c.` + caughtRow + `) AND (c.kind <> 'round' OR c.turn = n.newest)
		FROM shown p
		CROSS JOIN LATERAL (
			SELECT CASE p.kind WHEN 'repeat' THEN (SELECT max(m.turn) FROM step_runs m WHERE m.tenant_id = $1 AND m.parent_id = p.id) END AS newest
		) n
		JOIN step_runs c ON c.tenant_id = $1 AND c.parent_id = p.id
		WHERE p.opens AND (p.kind <> 'each' OR c.list LIKE 'error:%') AND (c.kind <> 'round' OR c.turn = 0 OR c.turn::text = p.chosen OR c.turn > n.newest - 3)
	)
	SELECT id FROM shown`

func (v *View) shown(ctx context.Context, tx tenants.Tx) ([]StepRun, error) {
	begin, from := partRows, any(nil)
	if v.Part != nil {
		from = v.Part.ID
	} else {
		var ids []string
		for _, node := range v.Program.Roots() {
			ids = append(ids, node.ID())
		}
		begin, from = topRows, ids
	}
	return stepRuns(ctx, tx, `tenant_id = $1 AND id IN (`+strings.Replace(shownRows, "{begin}", begin, 1)+`) ORDER BY created_at, id LIMIT $4`,
		tx.Tenant, v.Run.ID, from, mostViewed)
}

// Nodes are the steps of the part, or those at the top of the run.
func (v *View) Nodes() []*pipeline.Node {
	if v.Part == nil {
		return v.Program.Roots()
	}
	if node := v.Program.Node(v.Part.StepID); node != nil {
		if list := node.Child(v.Part.List); list != nil {
			return list.Nodes
		}
	}
	return nil
}

// openWaitsAt reads the open waits of some step runs.
func openWaitsAt(ctx context.Context, tx tenants.Tx, steps []StepRunID) (map[StepRunID]Wait, error) {
	rows, _ := tx.Query(ctx, `
		SELECT `+waitColumns+` FROM waits
		WHERE tenant_id = $1 AND step_run_id = ANY ($2) AND state = 'open'`, tx.Tenant, steps)
	list, err := pgx.CollectRows(rows, scanWait)
	if err != nil {
		return nil, fmt.Errorf("read the waits of steps: %w", err)
	}
	waits := make(map[StepRunID]Wait, len(list))
	for _, wait := range list {
		waits[wait.StepRun] = wait
	}
	return waits, nil
}
