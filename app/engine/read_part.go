package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// GroupView is a group of a run with some of its parts.
type GroupView struct {
	Run     Run
	Program *pipeline.Program
	Group   StepRun
	Around  []StepRun // what the group stands in, outermost first
	Size    GroupSize
	Parts   []PartLine
	More    bool   // there are parts behind the last
	Version uint64 // grows with every change of the run; compare with Changed
}

// PartLine is an item, round or lane as lists show it.
type PartLine struct {
	Part     StepRun
	Standing StandingState
	At       *StepRun // the worst open step in it; nil where none is open
	Wait     *Wait    // of that step
	Value    []byte   // the beginning of what an item is about, or of what a round or lane gave
}

// PartFilter chooses parts of a group. A standing of "" takes all.
type PartFilter struct {
	Standing StandingState
	From     int // the first turn
	Limit    int
}

// beginningBytes is how much of a value a list reads.
const beginningBytes = 2 << 10

// GroupOf reads a group with the parts that a filter chooses, in their order. It
// returns ErrNoRun or ErrNoPart.
func GroupOf(ctx context.Context, tx tenants.Tx, id RunID, group StepRunID, filter PartFilter) (GroupView, error) {
	var g GroupView
	v := View{}
	var err error
	if v.Run, err = RunByID(ctx, tx, id); err != nil {
		return g, err
	}
	chain, err := v.chain(ctx, tx, group)
	if err != nil {
		return g, err
	}
	if len(chain) == 0 || !IsGroup(chain[len(chain)-1].Kind) {
		return g, ErrNoPart
	}
	g.Run, g.Group, g.Around = v.Run, chain[len(chain)-1], chain[:len(chain)-1]
	version, err := pipeline.VersionByNumber(ctx, tx, g.Run.PipelineID, g.Run.Version)
	if err != nil {
		return g, err
	}
	g.Program = version.Program
	if g.Version, err = Changed(ctx, tx, id); err != nil {
		return g, err
	}
	sizes, err := groupSizes(ctx, tx, id, []StepRunID{group})
	if err != nil {
		return g, err
	}
	g.Size = sizes[group]
	return g, g.readParts(ctx, tx, filter)
}

func (g *GroupView) readParts(ctx context.Context, tx tenants.Tx, filter PartFilter) error {
	rows, err := g.choose(ctx, tx, filter)
	if err != nil {
		return err
	}
	if g.More = len(rows) > filter.Limit; g.More {
		rows = rows[:filter.Limit]
	}
	for _, row := range rows {
		g.Parts = append(g.Parts, PartLine{Part: row})
	}
	if err := readValues(ctx, tx, g.Parts); err != nil {
		return err
	}
	if err := readAt(ctx, tx, g.Run.ID, g.Parts); err != nil {
		return err
	}
	var ids []StepRunID
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	costs, err := partCosts(ctx, tx, ids)
	if err != nil {
		return err
	}
	for i := range g.Parts {
		g.Parts[i].Standing, g.Parts[i].Part.CostMicros = g.Parts[i].standing(), costs[g.Parts[i].Part.ID]
	}
	return nil
}

// standing is how the part stands, by its own state or by what it waits for.
func (p PartLine) standing() StandingState {
	for standing, states := range endedAs {
		if slices.Contains(states, p.Part.State) {
			return standing
		}
	}
	if p.Wait == nil {
		return StandingRunning
	}
	return standing(RunRunning, StepWaiting, p.Wait.Kind)
}

// endedAs are the standings that a part's own state tells, without a look inside it.
var endedAs = map[StandingState][]StepState{
	StandingCompleted: {StepDone}, StandingFailed: {StepFailed}, StandingQueued: {StepQueued}, StandingCancelled: {StepCancelled, StepSkipped},
}

// choose reads the parts that a filter chooses, one more than its limit where there are
// more.
func (g *GroupView) choose(ctx context.Context, tx tenants.Tx, filter PartFilter) ([]StepRun, error) {
	states, told := endedAs[filter.Standing]
	switch {
	case told:
		return stepRuns(ctx, tx, `tenant_id = $1 AND parent_id = $2 AND `+onlyParts+` AND turn >= $3 AND state = ANY ($4) ORDER BY turn LIMIT $5`,
			tx.Tenant, g.Group.ID, filter.From, states, filter.Limit+1)
	case filter.Standing == "":
		return stepRuns(ctx, tx, `tenant_id = $1 AND parent_id = $2 AND `+onlyParts+` AND turn >= $3 ORDER BY turn LIMIT $4`,
			tx.Tenant, g.Group.ID, filter.From, filter.Limit+1)
	}
	rows, _ := tx.Query(ctx, partStandings+`
		SELECT id FROM parts WHERE standing = $4 AND turn >= $5 ORDER BY turn LIMIT $6`,
		tx.Tenant, g.Run.ID, []StepRunID{g.Group.ID}, filter.Standing, filter.From, filter.Limit+1)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[StepRunID])
	if err != nil {
		return nil, fmt.Errorf("list the parts of a group: %w", err)
	}
	return stepRuns(ctx, tx, `tenant_id = $1 AND id = ANY ($2) ORDER BY turn`, tx.Tenant, ids)
}

// onlyParts leaves out of a group's rows the steps that handle its failure.
const onlyParts = `kind IN ('round', 'item', 'lane')`

// readValues adds to items the beginning of what they are about.
func readValues(ctx context.Context, tx tenants.Tx, parts []PartLine) error {
	var digests []Digest
	for _, part := range parts {
		if part.Part.Kind == KindItem {
			digests = append(digests, part.Part.Input)
		} else {
			digests = append(digests, part.Part.Output)
		}
	}
	values, err := beginnings(ctx, tx, digests)
	for i := range parts {
		parts[i].Value = values[digests[i]]
	}
	return err
}

// beginnings reads the first bytes of small values; of those in chunks it gives none.
func beginnings(ctx context.Context, tx tenants.Tx, digests []Digest) (map[Digest][]byte, error) {
	var wanted [][]byte
	for _, digest := range digests {
		if !digest.IsZero() {
			wanted = append(wanted, digest.bytes())
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `
		SELECT v.digest, coalesce(substring(v.content FROM 1 FOR $3), '') FROM stored_values v WHERE v.tenant_id = $1 AND v.digest = ANY ($2)`,
		tx.Tenant, wanted, beginningBytes)
	values := map[Digest][]byte{}
	var digest, value []byte
	_, err := pgx.ForEachRow(rows, []any{&digest, &value}, func() error {
		values[digestFrom(digest)], value = value, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the beginnings of values: %w", err)
	}
	return values, nil
}

// readAt adds to open parts the worst step that is open in them. It descends through
// open rows only, and into no other list's items.
func readAt(ctx context.Context, tx tenants.Tx, run RunID, parts []PartLine) error {
	var open []StepRunID
	for _, part := range parts {
		if part.Part.State == StepRunning || part.Part.State == StepWaiting {
			open = append(open, part.Part.ID)
		}
	}
	if len(open) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE down AS (
			SELECT s.parent_id AS part, s.id, s.kind, s.chosen FROM step_runs s
			WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.parent_id = ANY ($3) AND s.state IN ('queued', 'running', 'waiting')
			UNION ALL
			SELECT d.part, s.id, s.kind, s.chosen FROM down d JOIN step_runs s ON s.tenant_id = $1 AND s.run_id = $2 AND s.parent_id = d.id
			WHERE (d.kind <> 'each' OR d.chosen <> '') AND s.state IN ('queued', 'running', 'waiting')
		)
		SELECT DISTINCT ON (d.part) d.part, d.id FROM down d
		LEFT JOIN waits w ON w.tenant_id = $1 AND w.step_run_id = d.id AND w.state = 'open'
		WHERE d.kind = 'each' AND d.chosen = '' OR d.kind NOT IN `+groupKinds+` AND (d.`+notCaught+` OR w.id IS NOT NULL)
		ORDER BY d.part, array_position(ARRAY['cap', 'review', 'retry'], w.kind), w.id IS NULL, d.id`, tx.Tenant, run, open)
	at := map[StepRunID]StepRunID{}
	var steps []StepRunID
	var part, step StepRunID
	_, err := pgx.ForEachRow(rows, []any{&part, &step}, func() error {
		at[part], steps = step, append(steps, step)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look where parts are: %w", err)
	}
	return fillAt(ctx, tx, parts, at, steps)
}

func fillAt(ctx context.Context, tx tenants.Tx, parts []PartLine, at map[StepRunID]StepRunID, steps []StepRunID) error {
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND id = ANY ($2)`, tx.Tenant, steps)
	if err != nil {
		return err
	}
	waits, err := openWaitsAt(ctx, tx, steps)
	if err != nil {
		return err
	}
	byID := map[StepRunID]*StepRun{}
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	for i := range parts {
		step := byID[at[parts[i].Part.ID]]
		if step == nil {
			continue
		}
		parts[i].At = step
		if wait, ok := waits[step.ID]; ok {
			parts[i].Wait = &wait
		}
	}
	return nil
}

// PlaceOf finds the part in which a step run is drawn: the item, the round or the
// branch around it, zero at the top of the run. It returns ErrNoPart where the run has
// no such step run.
func PlaceOf(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID) (StepRunID, error) {
	v := View{Run: Run{ID: run}}
	chain, err := v.chain(ctx, tx, step)
	if err != nil {
		return StepRunID{}, err
	}
	if len(chain) == 0 {
		return StepRunID{}, ErrNoPart
	}
	for i := len(chain) - 1; i >= 0; i-- {
		if IsPart(chain[i].Kind) {
			return chain[i].ID, nil
		}
	}
	return StepRunID{}, nil
}
