package web

import (
	"context"
	"net/http"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// groupView is a list, a loop or branches side by side, with the parts of one page.
type groupView struct {
	v     *visit
	Group engine.GroupView
	State string // as the address says: "all" or a standing; "" chooses
	From  int
	Asked map[[16]byte][]review.Asked
}

// partsPerPage is how many parts one page lists.
const partsPerPage = 50

// groupPage lists the parts of a group; each has a page of its own.
func (s *Server) groupPage(v *visit) error {
	run, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	group, err := idParam[engine.StepRun](v, "group")
	if err != nil {
		return err
	}
	view := groupView{v: v, State: v.QueryParam("state")}
	view.From, _ = strconv.Atoi(v.QueryParam("from")) // what is no number is the beginning
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, run, group) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(view.title(), inRuns), groupBody(view))
}

func (g *groupView) read(ctx context.Context, tx tenants.Tx, run engine.RunID, group engine.StepRunID) error {
	filter := engine.PartFilter{Standing: engine.StandingState(g.State), From: g.From, Limit: partsPerPage}
	if g.State == "all" {
		filter.Standing = ""
	}
	var err error
	if g.Group, err = engine.GroupOf(ctx, tx, run, group, filter); err != nil {
		return err
	}
	if g.node() == nil {
		return engine.ErrNoPart
	}
	var asking [][16]byte
	for _, part := range g.Group.Parts {
		if part.Standing == engine.StandingPerson && part.At != nil {
			asking = append(asking, part.At.ID)
		}
	}
	g.Asked, err = g.v.s.Reviews.OpenOfSteps(ctx, tx, asking)
	return err
}

func (g groupView) node() *pipeline.Node { return g.Group.Program.Node(g.Group.Group.StepID) }

func (g groupView) title() string { return g.node().Step.Name + ": " + g.Group.Run.Name }

// things are what the parts are called together.
func (g groupView) things() (one, many string) {
	switch g.Group.Group.Kind {
	case pipeline.KindEach:
		return "item", "items"
	case pipeline.KindRepeat:
		return "round", "rounds"
	}
	return "branch", "branches"
}

// head says where one is and how far the group is.
func (g groupView) head() ui.PageHead {
	run := g.Group.Run
	crumbs := append(runCrumbs(g.v, run), partCrumbs(g.v, run, g.Group.Program, g.Group.Around)...)
	one, many := g.things()
	lead := ui.Sentence{ui.Strong(ui.Plural(int64(g.Group.Size.Parts), one, many))}
	if words := countedWords(g.Group.Size); words != "" {
		lead = append(lead, ui.Plain(": "+words))
	}
	return ui.PageHead{
		Crumbs: append(crumbs, ui.Link{Text: sentenceCase(many)}), Title: g.node().Step.Name, Lead: append(lead, ui.Plain(".")),
		Over:    "Step " + g.node().Number + " · " + g.node().Kind().Title() + " · " + run.Name,
		Actions: ui.Actions{ui.Button{Text: "Look again", Href: g.address(g.State, g.From)}},
	}
}

// address is that of the list with a filter, from one of its parts on.
func (g groupView) address(state string, from int) string {
	pairs := []string{"state", state}
	if from > 0 {
		pairs = append(pairs, "from", strconv.Itoa(from))
	}
	return g.v.path("runs", g.Group.Run.ID.String(), "groups", g.Group.Group.ID.String()) + queryOf(pairs...)
}

// filters offer what there is, failures first.
func (g groupView) filters() ui.Filters {
	filters := ui.Filters{Label: "Parts by how they stand", Scroll: true}
	for _, one := range []struct {
		standing engine.StandingState
		words    string
	}{
		{engine.StandingFailed, "Failed"}, {engine.StandingCapped, "Stopped by the cap"}, {engine.StandingPerson, "Waiting for a person"},
		{engine.StandingRetrying, "Retrying"}, {engine.StandingWaiting, "Waiting"}, {engine.StandingRunning, "Running"},
		{engine.StandingQueued, "Not begun"}, {engine.StandingCompleted, "Done"}, {engine.StandingCancelled, "Cancelled"},
	} {
		n, here := g.Group.Size.By[one.standing], g.State == string(one.standing)
		if n > 0 || here || one.standing == engine.StandingFailed {
			filters.Items = append(filters.Items, ui.Filter{Text: one.words, Href: g.address(string(one.standing), 0), Count: ui.Count(int64(n)), Here: here})
		}
	}
	all := g.State == "all" || g.State == ""
	return ui.Filters{Label: filters.Label, Scroll: true, Items: append(filters.Items, ui.Filter{
		Text: "All", Href: g.address("all", 0), Count: ui.Count(int64(g.Group.Size.Parts)), Here: all,
	})}
}

func (g groupView) table() ui.Table {
	one, many := g.things()
	table := ui.Table{ID: "parts", Caption: sentenceCase(many) + " in their order", CaptionUnseen: true, Brief: true,
		Columns: []ui.Column{{Title: sentenceCase(one)}, {Title: "Status"}, {Title: "Why, and what happens next"}, {Title: "Time", Number: true}}}
	if g.v.maySeeMoney() {
		table.Columns = append(table.Columns, ui.Column{Title: "Cost", Number: true})
	}
	for _, part := range g.Group.Parts {
		table.Rows = append(table.Rows, g.row(part))
	}
	return table
}

func (g groupView) row(part engine.PartLine) ui.TableRow {
	badge := ui.Badge{Status: statusOf(part.Standing)}
	if part.Standing == engine.StandingQueued {
		badge.Words = "Not begun"
	}
	name, small := partName(g.Group.Program, part.Part), ""
	if part.Part.Kind == engine.KindItem {
		if words := shortValue(part.Value); words != "" {
			name, small = words, name
		}
	}
	cells := []ui.Cell{
		{Text: name, Href: g.v.path("runs", g.Group.Run.ID.String(), "parts", part.Part.ID.String()), Small: small},
		{Badge: &badge},
		{Rich: g.reason(part)},
		{Text: tookWords(part.Part, g.v.now)},
	}
	if g.v.maySeeMoney() {
		cells = append(cells, ui.Cell{Text: costWords(part.Part.CostMicros)})
	}
	return ui.TableRow{ID: "part-" + strconv.Itoa(part.Part.Turn), Cells: cells}
}

// reason says why a part stands so, in the words of the list of runs.
func (g groupView) reason(part engine.PartLine) ui.Sentence {
	switch {
	case part.Standing == engine.StandingFailed && part.Part.Failure != nil:
		return ui.Sentence{ui.Name(part.Part.Failure.Message)}
	case part.Standing == engine.StandingQueued:
		return ui.Words("Begins when it is its turn.")
	case part.At != nil:
		return g.news(part).reason(g.v.now, g.v.zone())
	case part.Part.Score != "":
		return g.scored(part)
	case part.Part.Kind != engine.KindItem:
		return ui.Sentence{ui.Name(shortValue(part.Value))}
	}
	return nil
}

// scored tells a score, and of a loop which round is the best.
func (g groupView) scored(part engine.PartLine) ui.Sentence {
	out := ui.Sentence{ui.Plain("Score "), ui.Strong(part.Part.Score)}
	if part.Part.Kind == engine.KindRound && string(g.Group.Group.Chosen) == strconv.Itoa(part.Part.Turn) {
		out = append(out, ui.Plain(", the best"))
	}
	return append(out, ui.Plain("."))
}

// news is a part as a line of a list of runs would tell it.
func (g groupView) news(part engine.PartLine) news {
	line := engine.Line{
		Run: g.Group.Run, Standing: part.Standing, StepID: part.At.StepID, StepName: stepName(g.Group.Program, part.At.StepID),
		Since: part.At.BegunAt, Attempt: part.At.Attempt,
	}
	if part.Wait != nil {
		line.Wait, line.Due, line.Reason, line.Since = part.Wait.Kind, part.Wait.Due, part.Wait.Reason, part.Wait.OpenedAt
		line.EventName, line.EventKey = part.Wait.EventName, part.Wait.EventKey
	}
	return newsOf(g.v.discreet(line), g.Group.Program, g.Asked[part.At.ID], g.v.user)
}

// pager goes by the place in the list, so that what happens meanwhile moves nothing.
func (g groupView) pager() ui.Pager {
	one, many := g.things()
	pager := ui.Pager{Shown: ui.Plural(int64(len(g.Group.Parts)), one, many) + " on this page"}
	if g.From > 0 {
		pager.Prev = ui.Link{Text: "Back to the first", Href: g.address(g.State, 0)}
	}
	if g.Group.More {
		pager.Next = ui.Link{Text: "More " + many, Href: g.address(g.State, g.Group.Parts[len(g.Group.Parts)-1].Part.Turn+1)}
	}
	return pager
}

func (g groupView) nothing() string {
	_, many := g.things()
	if g.State == string(engine.StandingFailed) {
		return "None of the " + many + " failed"
	}
	return "No " + many + " here"
}
