package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runsView is the list of runs with why each stands as it does.
type runsView struct {
	v        *visit
	Group    engine.Group
	Pipeline pipeline.ID
	Version  int // of the pipeline; 0: all
	Before   engine.RunID
	Of       string // name of the pipeline, where only its runs are shown
	Sizes    map[engine.Group]int
	News     []news
	More     bool
}

// runsPerPage is how many runs one page lists.
const runsPerPage = 50

// groupWords are the filters in their order. A first visit shows what is open.
var groupWords = []struct {
	group engine.Group
	words string
}{
	{"", "All"}, {engine.GroupOpen, "Open"}, {engine.GroupPerson, "Waiting for a person"},
	{engine.GroupCapped, "Stopped by the cap"}, {engine.GroupPaused, "Paused"}, {engine.GroupQueued, "Queued"},
	{engine.GroupFailed, "Failed"}, {engine.GroupCompleted, "Done"},
	{engine.GroupCancelled, "Cancelled"},
}

// runsPage lists runs, newest first.
func (s *Server) runsPage(v *visit) error {
	view, err := v.readRunsQuery()
	if err != nil {
		return err
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(view.title(), inRuns), runsBody(view))
}

// readRunsQuery reads what the address asks for. What it cannot be is not found, since
// the page itself never links there.
func (v *visit) readRunsQuery() (runsView, error) {
	view := runsView{v: v, Group: engine.Group(v.QueryParam("state"))}
	if !view.Group.Known() {
		return view, errNotFound
	}
	var err error
	if text := v.QueryParam("pipeline"); text != "" {
		if view.Pipeline, err = tenants.ParseID[pipeline.Pipeline](text); err != nil {
			return view, errNotFound
		}
	}
	if view.Version, err = versionParam(v.QueryParam("version")); err != nil || view.Version > 0 && view.Pipeline.IsZero() {
		return view, errNotFound
	}
	if text := v.QueryParam("before"); text != "" {
		if view.Before, err = tenants.ParseID[engine.Run](text); err != nil {
			return view, errNotFound
		}
	}
	return view, nil
}

// read asks for one run more than a page holds, to know whether there is another page.
func (r *runsView) read(ctx context.Context, tx tenants.Tx) error {
	if !r.Pipeline.IsZero() {
		one, err := pipeline.ByID(ctx, tx, r.Pipeline)
		if err != nil {
			return err
		}
		r.Of = one.Name
	}
	lines, err := engine.ListRuns(ctx, tx, engine.Filter{Pipeline: r.Pipeline, Version: r.Version, Group: r.Group, Before: r.Before, Limit: runsPerPage + 1})
	if err != nil {
		return err
	}
	if r.More = len(lines) > runsPerPage; r.More {
		lines = lines[:runsPerPage]
	}
	if r.News, err = r.v.newsOf(ctx, tx, lines); err != nil {
		return err
	}
	r.Sizes, err = engine.GroupSizes(ctx, tx, r.Pipeline, r.Version)
	return err
}

func (r runsView) title() string {
	for _, one := range groupWords {
		if one.group == r.Group && r.Group != "" {
			return "Runs: " + inSentenceCase(one.words)
		}
	}
	return "Runs"
}

// address is that of the list with another group, or of its next page.
func (r runsView) address(group engine.Group, before engine.RunID) string {
	query := url.Values{}
	if group != "" {
		query.Set("state", string(group))
	}
	if !r.Pipeline.IsZero() {
		query.Set("pipeline", r.Pipeline.String())
	}
	if r.Version > 0 {
		query.Set("version", strconv.Itoa(r.Version))
	}
	if !before.IsZero() {
		query.Set("before", before.String())
	}
	if len(query) == 0 {
		return r.v.path("runs")
	}
	return r.v.path("runs") + "?" + query.Encode()
}

// filters are links with counts; the one that is shown is marked.
func (r runsView) filters() ui.Filters {
	filters := ui.Filters{Label: "Runs by how they stand", Scroll: true}
	for _, one := range groupWords {
		rare := one.group == engine.GroupPaused || one.group == engine.GroupQueued
		if rare && r.Sizes[one.group] == 0 && one.group != r.Group {
			continue
		}
		filters.Items = append(filters.Items, ui.Filter{
			Text: one.words, Href: r.address(one.group, engine.RunID{}), Count: sizeWords(r.Sizes[one.group]), Here: one.group == r.Group,
		})
	}
	return filters
}

// sizeWords is a count, which is not counted out beyond a bound.
func sizeWords(n int) string {
	if n > engine.MaxCounted {
		return ui.Count(engine.MaxCounted) + "+"
	}
	return ui.Count(int64(n))
}

func (r runsView) caption() string {
	what := "runs"
	if r.Sizes[r.Group] == 1 {
		what = "run"
	}
	words := sizeWords(r.Sizes[r.Group]) + " " + what
	if r.Of != "" {
		words += " of “" + r.Of + "”"
		if r.Version > 0 {
			words += versionWords(r.Version)
		}
	}
	return words + ", newest first; times in " + ui.ZoneName(r.v.now, r.v.zone()) + "."
}

func (r runsView) columns() []ui.Column {
	columns := []ui.Column{{Title: "Run"}, {Title: "Status"}, {Title: "Why, and what happens next"}, {Title: "Started", Number: true}}
	if r.v.maySeeMoney() {
		columns = append(columns, ui.Column{Title: "Cost", Number: true})
	}
	return columns
}

func (r runsView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, n := range r.News {
		badge := n.badge()
		cells := []ui.Cell{
			{Text: n.Run.Name, Href: r.v.path("runs", n.Run.ID.String()), Small: runTitle(n.Run)},
			{Badge: &badge},
			{Rich: n.reason(r.v.now, r.v.zone())},
			{Text: ui.WhenBrief(n.Run.CreatedAt, r.v.now, r.v.zone())},
		}
		if r.v.maySeeMoney() {
			cells = append(cells, ui.Cell{Text: costWords(n.CostMicros)})
		}
		rows = append(rows, ui.TableRow{ID: "run-" + n.Run.ID.String(), Cells: cells})
	}
	return rows
}

// costWords is a cost, or a dash where nothing was spent.
func costWords(micros int64) string {
	if micros == 0 {
		return "–"
	}
	return ui.Dollars(micros)
}

// pager goes by the last run that was seen, so that new runs move nothing.
func (r runsView) pager() ui.Pager {
	pager := ui.Pager{Shown: ui.Plural(int64(len(r.News)), "run", "runs") + " on this page"}
	if !r.Before.IsZero() {
		pager.Prev = ui.Link{Text: "Back to the newest", Href: r.address(r.Group, engine.RunID{})}
	}
	if r.More {
		pager.Next = ui.Link{Text: "Older runs", Href: r.address(r.Group, r.News[len(r.News)-1].Run.ID)}
	}
	return pager
}

// versionWords names a version in running text.
func versionWords(number int) string { return ", v" + strconv.Itoa(number) }
