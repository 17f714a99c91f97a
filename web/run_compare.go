package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runCompareView is a run beside the last one of its pipeline that was done before it.
type runCompareView struct {
	v    *visit
	Run  engine.Run
	Good engine.Run // zero where there is none
	Rows []compared
}

// Bounds of what counts as a difference: what is both several times as much and worth a look.
const (
	slowerBy   = 2
	slowerThan = 10 * time.Second
	dearerBy   = 1.5
	dearerThan = 10_000 // micro-dollars
)

// compareRunPage shows what went otherwise than last time.
func (s *Server) compareRunPage(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	view := runCompareView{v: v}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Compare “"+view.Run.Name+"”", inRuns), runCompareBody(view))
}

func (c *runCompareView) read(ctx context.Context, tx tenants.Tx, id engine.RunID) error {
	now, err := engine.ViewOf(ctx, tx, id, engine.StepRunID{})
	if err != nil {
		return err
	}
	c.Run = now.Run
	good, found, err := engine.LastGood(ctx, tx, now.Run)
	if err != nil || !found {
		return err
	}
	c.Good = good
	then, err := engine.ViewOf(ctx, tx, good.ID, engine.StepRunID{})
	if err != nil {
		return err
	}
	c.Rows = compareSteps(passages(now, engine.History{}), passages(then, engine.History{}), tx.Now)
	return nil
}

// compared is one step in both runs. Either may be nil where a run has no such step.
type compared struct {
	Now, Then *passage
	Name      string
	Differs   []string // in words, the most telling first
	Dearer    bool     // the last of Differs is about cost
}

// compareSteps puts the steps of two runs side by side, in the order of the first, and says
// what differs. Rounds and branches are compared by the steps around them.
func compareSteps(now, then []passage, at time.Time) []compared {
	before := map[string]*passage{}
	for i, p := range then {
		if !p.isPart() && before[p.Node.ID()] == nil {
			before[p.Node.ID()] = &then[i]
		}
	}
	var rows []compared
	seen := map[string]bool{}
	for i, p := range now {
		if p.isPart() || seen[p.Node.ID()] {
			continue
		}
		seen[p.Node.ID()] = true
		row := compared{Now: &now[i], Then: before[p.Node.ID()], Name: p.Node.Number + " " + p.name()}
		row.judge(at)
		rows = append(rows, row)
	}
	for i, p := range then {
		if !p.isPart() && !seen[p.Node.ID()] {
			seen[p.Node.ID()] = true
			row := compared{Then: &then[i], Name: p.name()}
			row.judge(at)
			rows = append(rows, row)
		}
	}
	return rows
}

// judge says what differs at one step.
func (c *compared) judge(at time.Time) {
	a, b := rowIn(c.Now), rowIn(c.Then)
	switch {
	case a == nil && b == nil:
		return
	case b == nil:
		c.Differs = append(c.Differs, "Was not reached then.")
		return
	case a == nil && c.Now == nil:
		c.Differs = append(c.Differs, "This run’s version has no such step, or took another way.")
		return
	case a == nil:
		c.Differs = append(c.Differs, "Not reached now.")
		return
	}
	if a.State != b.State {
		c.Differs = append(c.Differs, "Stands otherwise.")
	}
	if a.Chosen != b.Chosen {
		c.Differs = append(c.Differs, "Decided otherwise: “"+c.way(c.Now, a)+"”, then “"+c.way(c.Then, b)+"”.")
	}
	if took, usual := lasted(a, at), lasted(b, at); took-usual > slowerThan && took > slowerBy*usual {
		c.Differs = append(c.Differs, "Took longer.")
	}
	if a.Attempt > b.Attempt {
		c.Differs = append(c.Differs, "Was tried "+ui.Plural(int64(a.Attempt), "time", "times")+", then "+ui.Plural(int64(b.Attempt), "time", "times")+".")
	}
	if a.CostMicros-b.CostMicros > dearerThan && float64(a.CostMicros) > dearerBy*float64(b.CostMicros) {
		c.Differs, c.Dearer = append(c.Differs, "Cost more."), true
	}
}

// way names the list of steps that a step took.
func (c *compared) way(p *passage, s *engine.StepRun) string {
	if list := p.Node.Child(s.Chosen); list != nil && list.Name != "" {
		return list.Name
	}
	if s.Chosen == "" {
		return "nothing"
	}
	if s.Chosen == pipeline.ListOtherwise {
		return "Otherwise"
	}
	return string(s.Chosen)
}

func rowIn(p *passage) *engine.StepRun {
	if p == nil {
		return nil
	}
	return p.Step
}

// lasted is how long a step took, or has taken until now.
func lasted(s *engine.StepRun, at time.Time) time.Duration {
	if s.EndedAt != nil {
		return s.EndedAt.Sub(s.BegunAt)
	}
	return at.Sub(s.BegunAt)
}

// differs are the rows that differ, as far as the person may see why.
func (c runCompareView) differs() int {
	n := 0
	for _, row := range c.Rows {
		if len(c.words(row)) > 0 {
			n++
		}
	}
	return n
}

// words are what differs at a row; cost only for who may see money.
func (c runCompareView) words(row compared) []string {
	if row.Dearer && !c.v.maySeeMoney() {
		return row.Differs[:len(row.Differs)-1]
	}
	return row.Differs
}

func (c runCompareView) lead() ui.Sentence {
	if c.Good.ID.IsZero() {
		return ui.Words("No earlier run of this pipeline is done, so there is nothing to compare with.")
	}
	good := ui.LinkTo("#"+strconv.FormatInt(c.Good.Number, 10), c.v.path("runs", c.Good.ID.String()))
	switch n := c.differs(); n {
	case 0:
		return ui.Sentence{ui.Strong("Nothing differs"), ui.Plain(" that is worth a look from "), good, ui.Plain(", the last run before it that was done.")}
	case 1:
		return ui.Sentence{ui.Strong("One step went otherwise"), ui.Plain(" than in "), good, ui.Plain(", the last run before it that was done.")}
	default:
		return ui.Sentence{ui.Strong(ui.Count(int64(n)) + " steps went otherwise"), ui.Plain(" than in "), good, ui.Plain(", the last run before it that was done.")}
	}
}

func (c runCompareView) columns() []ui.Column {
	columns := []ui.Column{{Title: "Step"}, {Title: "What differs"}, {Title: "This run"}, {Title: "Took", Number: true}, {Title: "Run #" + strconv.FormatInt(c.Good.Number, 10)}, {Title: "Took then", Number: true}}
	if c.v.maySeeMoney() {
		columns = append(columns, ui.Column{Title: "Cost", Number: true}, ui.Column{Title: "Cost then", Number: true})
	}
	return columns
}

func (c runCompareView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, row := range c.Rows {
		var said ui.Sentence
		for i, words := range c.words(row) {
			if i > 0 {
				said = append(said, ui.Plain(" "))
			}
			said = append(said, ui.Name(words))
		}
		if len(said) == 0 {
			said = ui.Words("–")
		}
		cells := []ui.Cell{{Text: row.Name}, {Rich: said}}
		if row.Now != nil && row.Now.Step != nil {
			cells[0].Href = c.v.path("runs", c.Run.ID.String(), "steps", row.Now.Node.ID())
		}
		for _, p := range []*passage{row.Now, row.Then} {
			cells = append(cells, c.standing(p), c.took(p))
		}
		if c.v.maySeeMoney() {
			cells = append(cells, costCell(row.Now), costCell(row.Then))
		}
		rows = append(rows, ui.TableRow{Cells: cells})
	}
	return rows
}

func (c runCompareView) standing(p *passage) ui.Cell {
	if p == nil {
		return ui.Cell{Text: "–"}
	}
	badge := p.badge()
	return ui.Cell{Badge: &badge}
}

func (c runCompareView) took(p *passage) ui.Cell {
	if rowIn(p) == nil {
		return ui.Cell{Text: "–"}
	}
	return ui.Cell{Text: ui.Duration(lasted(p.Step, c.v.now))}
}

func costCell(p *passage) ui.Cell {
	if rowIn(p) == nil {
		return ui.Cell{Text: "–"}
	}
	return ui.Cell{Text: costWords(p.Step.CostMicros)}
}
