package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// versionsView lists the versions of a pipeline with the runs that are open on each.
type versionsView struct {
	v     *visit
	One   pipeline.Pipeline
	Lines []pipeline.VersionLine
	Open  map[int]engine.OpenRuns
	Cut   bool // there are more open runs than were counted
}

// versionsPage shows which runs are on which version.
func (s *Server) versionsPage(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	view := versionsView{v: v, Open: map[int]engine.OpenRuns{}}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Versions of "+view.One.Name, inPipelines), versionsBody(view))
}

func (p *versionsView) read(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	var err error
	if p.One, err = pipeline.ByID(ctx, tx, id); err != nil {
		return err
	}
	counts, cut, err := engine.OpenByVersion(ctx, tx, id)
	if err != nil {
		return err
	}
	p.Cut = cut
	var besides []int
	for _, one := range counts {
		p.Open[one.Version] = one
		besides = append(besides, one.Version)
	}
	p.Lines, err = pipeline.VersionLines(ctx, tx, id, besides)
	return err
}

// lead says what becomes of runs when a version is published.
func (p versionsView) lead() ui.Sentence {
	lead := ui.Words("A run stays on the version it began with. One that waits or is paused can be moved to another, if what it has done is there unchanged.")
	if p.Cut {
		lead = append(lead, ui.Plain(" Only the newest "+ui.Count(engine.MaxCounted)+" open runs are counted."))
	}
	return lead
}

func (p versionsView) caption() string {
	open := 0
	for _, one := range p.Open {
		open += one.All()
	}
	return ui.Plural(int64(len(p.Lines)), "version", "versions") + " with " + ui.Plural(int64(open), "open run", "open runs") + ", newest first; times in " +
		ui.ZoneName(p.v.now, p.v.zone()) + "."
}

func (p versionsView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, line := range p.Lines {
		published := ui.WhenBrief(line.PublishedAt, p.v.now, p.v.zone())
		rows = append(rows, ui.TableRow{ID: "version-" + strconv.Itoa(line.Number), Cells: []ui.Cell{
			p.nameCell(line), {Text: openWords(p.Open[line.Number])}, {Rich: p.standings(p.Open[line.Number], line.Number)},
			{Text: published, Small: by(line.PublishedBy)}, {Rich: p.ways(line.Number)},
		}})
	}
	return rows
}

// ways lead from a version to what sets it apart, and back to it.
func (p versionsView) ways(number int) ui.Sentence {
	at := func(page string, query url.Values) string {
		return p.v.path("pipelines", p.One.ID.String(), "versions", page) + "?" + query.Encode()
	}
	var out ui.Sentence
	if number > 1 {
		before := url.Values{"from": {strconv.Itoa(number - 1)}, "to": {strconv.Itoa(number)}}
		out = append(out, ui.LinkTo("What changed", at("compare", before)))
	}
	if number == p.One.Live {
		return out
	}
	against := url.Values{"from": {strconv.Itoa(number)}, "to": {strconv.Itoa(p.One.Live)}}
	if len(out) > 0 {
		out = append(out, ui.Plain(" · "))
	}
	out = append(out, ui.LinkTo("compare with the live one", at("compare", against)))
	if p.v.me.Role.May(tenants.BuildPipelines) {
		out = append(out, ui.Plain(" · "), ui.LinkTo("make it live again", at("restore", url.Values{"version": {strconv.Itoa(number)}})))
	}
	return out
}

// by names who did something.
func by(name string) string {
	if name == "" {
		return ""
	}
	return "by " + name
}

// nameCell names a version, and leads to its runs.
func (p versionsView) nameCell(line pipeline.VersionLine) ui.Cell {
	name := "v" + strconv.Itoa(line.Number)
	if line.Number == p.One.Live {
		name += ", live"
	}
	return ui.Cell{Text: name, Href: p.runs("", line.Number), Small: line.Note}
}

// openWords count the open runs of a version.
func openWords(open engine.OpenRuns) string {
	if open.All() == 0 {
		return "None"
	}
	return ui.Count(int64(open.All()))
}

// standings are the counts that make up the open runs, each leading to its runs where
// the list of runs can choose them.
func (p versionsView) standings(open engine.OpenRuns, version int) ui.Sentence {
	var out ui.Sentence
	for _, part := range []struct {
		n     int
		words string
		group engine.Group
	}{
		{open.Person, "waiting for a person", engine.GroupPerson}, {open.Capped, "stopped by the cap", engine.GroupCapped},
		{open.Waiting, "waiting for something else", ""}, {open.Paused, "paused", engine.GroupPaused},
		{open.Queued, "queued", engine.GroupQueued}, {open.Working, "at work", ""},
	} {
		if part.n == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, ui.Plain(" · "))
		}
		out = append(out, ui.Plain(ui.Count(int64(part.n))+" "))
		if part.group == "" {
			out = append(out, ui.Plain(part.words))
			continue
		}
		out = append(out, ui.LinkTo(part.words, p.runs(part.group, version)))
	}
	return out
}

// runs is the list of runs of a version.
func (p versionsView) runs(group engine.Group, version int) string {
	return runsView{v: p.v, Filter: runFilter{Filter: engine.Filter{Pipeline: p.One.ID, Version: version}}}.address(group, engine.RunID{})
}

// versionFact names the run's version, and the way to another where it is open.
func (r *runView) versionFact() ui.Sentence {
	run := r.View.Run
	fact := ui.Sentence{ui.LinkTo("v"+strconv.Itoa(run.Version), r.v.path("pipelines", run.PipelineID.String(), "versions"))}
	if live := r.Versions.Live; live > 0 && live != run.Version && r.mayChange() {
		fact = append(fact, ui.Plain(", "), ui.LinkTo("move to v"+strconv.Itoa(live), r.path("move")))
	}
	return fact
}

// movedWords tell a move as a line of the run's story.
func movedWords(move engine.RunMove) ui.Sentence {
	what := " moved the run from v" + strconv.Itoa(move.From) + " to v" + strconv.Itoa(move.To)
	if move.By == "" {
		return ui.Words("Somebody" + what)
	}
	return ui.Sentence{ui.Name(move.By), ui.Plain(what)}
}

// otherVersions are those that a run could be moved to, the newest first.
func otherVersions(lines []pipeline.VersionLine, than int) []pipeline.VersionLine {
	return slices.DeleteFunc(slices.Clone(lines), func(line pipeline.VersionLine) bool { return line.Number == than })
}
