package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// moveView asks before a run is moved to another version, and says what that means.
type moveView struct {
	v      *visit
	Line   engine.Line
	News   news
	Others []pipeline.VersionLine
	Plan   engine.MovePlan // of the version that was chosen, where there is another
}

// movePage asks; only its form moves.
func (s *Server) movePage(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	to, err := versionParam(v.QueryParam("to"))
	if err != nil {
		return err
	}
	view := moveView{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id, to) })
	if errors.Is(err, engine.ErrEnded) {
		return v.redirect(v.path("runs", id.String()))
	}
	if err != nil {
		return err
	}
	frame := v.frame("Move "+view.Line.Run.Name+" to another version", inRuns)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, moveBody(view))
}

// versionParam reads the number of a version; 0 where none is given.
func versionParam(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > math.MaxInt32 {
		return 0, errNotFound
	}
	return number, nil
}

// read looks at the version that is asked for, or else at the live one, or the newest.
func (m *moveView) read(ctx context.Context, tx tenants.Tx, id engine.RunID, to int) error {
	var err error
	if m.Line, err = engine.LineByID(ctx, tx, id); err != nil {
		return err
	}
	if m.Line.Run.State.Final() {
		return engine.ErrEnded
	}
	lines, err := pipeline.VersionLines(ctx, tx, m.Line.Run.PipelineID, nil)
	if err != nil {
		return err
	}
	m.Others = otherVersions(lines, m.Line.Run.Version)
	if to == 0 {
		if to, err = m.likely(ctx, tx); err != nil || to == 0 {
			return err
		}
	}
	if m.Plan, err = engine.PlanMove(ctx, tx, id, to); err != nil {
		return err
	}
	all, err := m.v.newsOf(ctx, tx, []engine.Line{m.Line})
	if err != nil {
		return err
	}
	m.News = all[0]
	return nil
}

// likely is the version that most people would choose; 0 where there is no other.
func (m *moveView) likely(ctx context.Context, tx tenants.Tx) (int, error) {
	one, err := pipeline.ByID(ctx, tx, m.Line.Run.PipelineID)
	switch {
	case err != nil:
		return 0, err
	case one.Live != m.Line.Run.Version:
		return one.Live, nil
	case len(m.Others) > 0:
		return m.Others[0].Number, nil
	}
	return 0, nil
}

func (m moveView) here() string { return "v" + strconv.Itoa(m.Line.Run.Version) }

func (m moveView) there() string { return "v" + strconv.Itoa(m.Plan.To.Number) }

// chosen tells whether there is a version to move to.
func (m moveView) chosen() bool {
	return m.Plan.To.Number > 0 && m.Plan.To.Number != m.Line.Run.Version
}

// fits tells whether the run can be moved now.
func (m moveView) fits() bool { return m.chosen() && len(m.Plan.Misfits) == 0 && !m.Plan.AtWork }

// versions are the ones to choose from; a single one is no choice.
func (m moveView) versions() ui.Filters {
	filters := ui.Filters{Label: "Versions", Scroll: true}
	for _, line := range m.Others {
		number := strconv.Itoa(line.Number)
		filters.Items = append(filters.Items, ui.Filter{
			Text: "v" + number, Href: m.path("move") + queryOf("to", number), Here: line.Number == m.Plan.To.Number,
		})
	}
	return filters
}

func (m moveView) path(parts ...string) string {
	return m.v.path(append([]string{"runs", m.Line.Run.ID.String()}, parts...)...)
}

// consequences are what stays and what changes.
func (m moveView) consequences() []ui.Row {
	rows := []ui.Row{{Reason: append(ui.Sentence{ui.Plain("Now: ")}, m.News.sentence(m.v.now, m.v.zone())...)}}
	if m.Plan.Done > 0 {
		rows = append(rows, ui.Row{Reason: ui.Words(ui.Plural(int64(m.Plan.Done), "step that is done stays", "steps that are done stay") + ", with results and cost.")})
	}
	if m.Plan.Waits > 0 {
		rows = append(rows, ui.Row{Reason: ui.Words("What it waits for stays open: the same question, the same links, the same deadline.")})
	}
	return append(rows, ui.Row{Reason: ui.Words("What comes next follows " + m.there() + ". This is noted on the run’s page and in the audit log.")})
}

// misfitWords say of one reason what is in the way.
func (m moveView) misfitWords(fit engine.Misfit) ui.Sentence {
	step := ui.Name("Step " + fit.Number + " “" + fit.Name + "”")
	switch fit.Reason {
	case engine.MisfitRules:
		return ui.Words(m.there() + " follows older rules than the ones the run began under.")
	case engine.MisfitInput:
		return ui.Sentence{ui.Plain("The input’s field “"), ui.Name(fit.Name), ui.Plain("” is new and has to be filled in, or is of another kind than what the run was given.")}
	case engine.MisfitUnrun:
		return ui.Sentence{step, ui.Plain(" of " + m.there() + " stands before what the run has done, so it would never run.")}
	case engine.MisfitGone:
		return ui.Sentence{step, ui.Plain(" has begun, and " + m.there() + " does not have it.")}
	case engine.MisfitMoved:
		return ui.Sentence{step, ui.Plain(" has begun, and stands at another place in " + m.there() + ".")}
	case engine.MisfitCatches:
		return ui.Sentence{ui.Plain("A failure of "), step, ui.Plain(" was handled, which " + m.there() + " does differently.")}
	}
	return ui.Sentence{step, ui.Plain(" has begun, and does something else in " + m.there() + ".")}
}

func (m moveView) misfits() []ui.Row {
	var rows []ui.Row
	for _, fit := range m.Plan.Misfits {
		rows = append(rows, ui.Row{Reason: m.misfitWords(fit)})
	}
	return rows
}

// actions leave it, end it, or move it.
func (m moveView) actions() ui.Actions {
	actions := ui.Actions{
		ui.Button{Text: "Leave it on " + m.here(), Kind: ui.Quiet, Href: m.path()},
		ui.Button{Text: "Cancel the run", Href: m.path("cancel")},
	}
	if m.fits() {
		actions = append(actions, ui.Button{Text: "Move to " + m.there(), Kind: ui.Primary, TestID: "confirm-move"})
	}
	return actions
}

// moveRun moves the run. Sent again, or after somebody else did the same, it shows the
// run on its new version.
func (s *Server) moveRun(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	from, badFrom := versionParam(v.FormValue("from"))
	to, badTo := versionParam(v.FormValue("to"))
	if badFrom != nil || badTo != nil {
		return errors.Join(badFrom, badTo)
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		moved, err := s.Engine.Move(ctx, tx, id, from, to, v.me.User.ID)
		if err != nil || !moved {
			return err
		}
		return tenants.Audit(ctx, tx, tenants.Entry{
			Actor: tenants.ByMember(v.me), Action: "run.moved", Target: tenants.Target{Kind: "run", ID: id},
			Detail: map[string]any{"from": from, "to": to},
		})
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("runs", id.String()))
}
