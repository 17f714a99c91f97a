package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runsView is the list of runs with why each stands as it does.
type runsView struct {
	v         *visit
	Filter    runFilter
	Before    engine.RunID
	Of        string     // name of the pipeline, where only its runs are shown
	Above     engine.Run // the run below which others are shown
	Pipelines []pipeline.Named
	Fields    []pipeline.SearchField // that runs are found by
	Sizes     map[engine.Group]int
	Below     map[engine.RunID]int // how many runs are below each of the page
	News      []news
	Page      engine.Page
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
	view := runsView{v: v}
	var err error
	if view.Filter, err = v.readRunFilter(v.QueryParam); err != nil {
		return err
	}
	if text := v.QueryParam("before"); text != "" {
		if view.Before, err = tenants.ParseID[engine.Run](text); err != nil {
			return errNotFound
		}
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(view.title(), inRuns), runsBody(view))
}

func (r *runsView) read(ctx context.Context, tx tenants.Tx) error {
	if err := r.readAround(ctx, tx); err != nil {
		return err
	}
	var err error
	if r.Page, err = engine.ListRuns(ctx, tx, r.Filter.folded(), r.Before, runsPerPage); err != nil {
		return err
	}
	if r.News, err = r.v.newsOf(ctx, tx, r.Page.Lines); err != nil {
		return err
	}
	if r.Below, err = engine.CountBelow(ctx, tx, r.Page.Lines); err != nil {
		return err
	}
	if r.counts() {
		r.Sizes, err = engine.GroupSizes(ctx, tx, r.Filter.folded())
	}
	return err
}

// counts tells whether the groups are counted: not where each run would have to be looked at.
func (r runsView) counts() bool {
	f := r.Filter
	return f.Find == "" && f.Class == "" && f.Cause == "" && f.From.IsZero()
}

// readAround reads what the filter names, and what else it could name.
func (r *runsView) readAround(ctx context.Context, tx tenants.Tx) error {
	var err error
	if of := r.Filter.Pipeline; !of.IsZero() {
		one, err := pipeline.ByID(ctx, tx, of)
		if err != nil {
			return err
		}
		r.Of = one.Name
	}
	if under := r.Filter.Under; !under.IsZero() {
		if r.Above, err = engine.RunByID(ctx, tx, under); err != nil {
			return err
		}
	}
	if r.Pipelines, err = pipeline.Names(ctx, tx); err != nil {
		return err
	}
	of := r.Pipelines
	if !r.Filter.Pipeline.IsZero() {
		of = slices.DeleteFunc(slices.Clone(of), func(one pipeline.Named) bool { return one.ID != r.Filter.Pipeline })
	}
	r.Fields, err = pipeline.SearchFieldsOf(ctx, tx, of)
	return err
}

func (r runsView) title() string {
	for _, one := range groupWords {
		if one.group == r.Filter.Group && r.Filter.Group != "" {
			return "Runs: " + inSentenceCase(one.words)
		}
	}
	return "Runs"
}

// address is that of the list with another group, or of its next page.
func (r runsView) address(group engine.Group, before engine.RunID) string {
	filter := r.Filter
	filter.Group = group
	query := filter.values()
	if !before.IsZero() {
		query.Set("before", before.String())
	}
	if len(query) == 0 {
		return r.v.path("runs")
	}
	return r.v.path("runs") + "?" + query.Encode()
}

// csvAddress is that of the list as a file.
func (r runsView) csvAddress() string {
	if query := r.Filter.values().Encode(); query != "" {
		return r.v.path("runs.csv") + "?" + query
	}
	return r.v.path("runs.csv")
}

// filters are links with counts; the one that is shown is marked.
func (r runsView) filters() ui.Filters {
	filters := ui.Filters{Label: "Runs by how they stand", Scroll: true}
	for _, one := range groupWords {
		here := one.group == r.Filter.Group
		rare := one.group == engine.GroupPaused || one.group == engine.GroupQueued
		if rare && r.counts() && r.Sizes[one.group] == 0 && !here {
			continue
		}
		filter := ui.Filter{Text: one.words, Href: r.address(one.group, engine.RunID{}), Here: here}
		if r.counts() {
			filter.Count = sizeWords(r.Sizes[one.group])
		}
		filters.Items = append(filters.Items, filter)
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
	size := r.Sizes[r.Filter.Group]
	words := sizeWords(size) + " runs"
	if !r.counts() {
		size = len(r.News)
		words = ui.Plural(int64(size), "run", "runs") + " on this page"
	} else if size == 1 {
		words = "1 run"
	}
	if r.Of != "" {
		words += " of “" + r.Of + "”"
		if r.Filter.Version > 0 {
			words += versionWords(r.Filter.Version)
		}
	}
	if !r.Filter.Under.IsZero() {
		words += " below “" + r.Above.Name + "”"
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
			{Rich: append(n.reason(r.v.now, r.v.zone()), r.below(n.Run)...)},
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

// below leads to the runs that a run began.
func (r runsView) below(run engine.Run) ui.Sentence {
	n := r.Below[run.ID]
	if n == 0 {
		return nil
	}
	filter := runFilter{Filter: engine.Filter{Under: run.ID}}
	return ui.Sentence{ui.Plain(" "), ui.LinkTo(ui.Plural(int64(n), "run below it", "runs below it"), r.v.path("runs")+"?"+filter.values().Encode())}
}

// pager goes by the last run that was seen, so that new runs move nothing.
func (r runsView) pager() ui.Pager {
	pager := ui.Pager{Shown: ui.Plural(int64(len(r.News)), "run", "runs") + " on this page"}
	if !r.Before.IsZero() {
		pager.Prev = ui.Link{Text: "Back to the newest", Href: r.address(r.Filter.Group, engine.RunID{})}
	}
	if r.Page.More {
		pager.Next = ui.Link{Text: "Older runs", Href: r.address(r.Filter.Group, r.Page.Next)}
	}
	return pager
}

// versionWords names a version in running text.
func versionWords(number int) string { return ", v" + strconv.Itoa(number) }
