package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// pipelinesView is the list of a workspace's pipelines, each with its newest run.
type pipelinesView struct {
	v      *visit
	All    []pipeline.Pipeline
	Newest map[pipeline.ID]engine.Line
}

// pipelinesPage lists what the workspace can run.
func (s *Server) pipelinesPage(v *visit) error {
	view := pipelinesView{v: v}
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if view.All, err = pipeline.List(ctx, tx); err != nil {
			return err
		}
		view.Newest, err = engine.NewestRuns(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Pipelines", inPipelines), pipelinesBody(view))
}

// actions begin with a template or from nothing.
func (p pipelinesView) actions() ui.Actions {
	actions := ui.Actions{ui.Button{Text: "Browse templates", Icon: ui.IconTemplates, Href: p.v.path("templates")}}
	if p.v.me.Role.May(tenants.BuildPipelines) {
		actions = append(actions, ui.Button{Text: "New pipeline", Icon: ui.IconPlus, Href: p.v.path("pipelines", "new"), TestID: "to-new-pipeline"})
	}
	return actions
}

// rows have the newest run beside each pipeline: whether it works is the first question.
func (p pipelinesView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, one := range p.All {
		rows = append(rows, ui.TableRow{Cells: []ui.Cell{
			{Text: one.Name, Href: p.v.path("pipelines", one.ID.String()), Small: liveWords(one)},
			p.lastRun(one),
			{Text: ui.Count(one.Runs)},
			p.start(one),
		}})
	}
	return rows
}

// liveWords name the version that new runs take.
func liveWords(one pipeline.Pipeline) string {
	if one.Live == 0 {
		return "Not published yet"
	}
	return "v" + strconv.Itoa(one.Live) + " is live"
}

func (p pipelinesView) lastRun(one pipeline.Pipeline) ui.Cell {
	line, ok := p.Newest[one.ID]
	if !ok {
		return ui.Cell{Rich: ui.Words("Never run")}
	}
	badge := ui.Badge{Status: statusOf(line.Standing)}
	return ui.Cell{Badge: &badge, Rich: ui.Sentence{
		ui.Plain(" "), ui.LinkTo("#"+strconv.FormatInt(line.Run.Number, 10), p.v.path("runs", line.Run.ID.String())),
		ui.Plain(" began " + inSentence(ui.WhenBrief(line.Run.CreatedAt, p.v.now, p.v.zone()))),
	}}
}

// start is only offered where it would work.
func (p pipelinesView) start(one pipeline.Pipeline) ui.Cell {
	if one.Live == 0 || !p.v.me.Role.May(tenants.StartRuns) {
		return ui.Cell{}
	}
	return ui.Cell{Part: ui.Button{Text: "Start a run", About: one.Name, Little: true, Href: p.v.path("pipelines", one.ID.String(), "start")}}
}

// pipelineView is one pipeline: what it does, what it costs, its last runs.
type pipelineView struct {
	v          *visit
	One        pipeline.Pipeline
	Version    pipeline.Version // the live one; zero before it is published
	Lines      []engine.Line
	News       []news
	Month      ledger.MonthStatus
	Notices    []notice.Notice  // troubles of its runs that last
	Named      []pipeline.Named // the workspace's pipelines
	Told       notice.Settings
	ToldPeople []tenants.User
	Key        string
	Models     []Model     // that its steps may be given
	Answer     modelAnswer // to the question for a model; zero unless it must be asked again
	Priced     func(model string) bool
}

const pipelineLines = 6

// pipelinePage is one pipeline, with nothing to change but its model.
func (s *Server) pipelinePage(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	return v.showPipeline(http.StatusOK, id, modelAnswer{})
}

func (v *visit) showPipeline(status int, id pipeline.ID, answer modelAnswer) error {
	view := pipelineView{v: v, Key: newFormKey(), Answer: answer}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) }); err != nil {
		return err
	}
	title := view.One.Name
	if answer.fault != "" {
		title = "Error: " + title
	}
	return v.page(status, v.frame(title, inPipelines), pipelineBody(view))
}

func (p *pipelineView) read(ctx context.Context, tx tenants.Tx, id pipeline.ID) error {
	var err error
	if p.One, err = pipeline.ByID(ctx, tx, id); err != nil {
		return err
	}
	if p.One.Live > 0 {
		if p.Version, err = pipeline.VersionByNumber(ctx, tx, id, p.One.Live); err != nil {
			return err
		}
	}
	if p.Models, err = p.v.s.callable(ctx, tx); err != nil {
		return err
	}
	p.Models = offered(p.Models, p.asked())
	page, err := engine.ListRuns(ctx, tx, engine.Filter{Pipeline: id}, engine.RunID{}, pipelineLines)
	if err != nil {
		return err
	}
	p.Lines = page.Lines
	if p.News, err = p.v.newsOf(ctx, tx, p.Lines); err != nil {
		return err
	}
	if err := p.readTold(ctx, tx); err != nil {
		return err
	}
	if p.Priced, err = engine.Priced(ctx, tx); err != nil {
		return err
	}
	if p.Named, err = pipeline.Names(ctx, tx); err != nil {
		return err
	}
	if p.v.maySeeMoney() {
		p.Month, err = ledger.MonthOfPipeline(ctx, tx, ledger.PipelineID(id))
	}
	return err
}

// readTold reads who is told about its runs, and what there is to tell.
func (p *pipelineView) readTold(ctx context.Context, tx tenants.Tx) error {
	var err error
	if p.Notices, err = notice.Lasting(ctx, tx, p.One.ID); err != nil {
		return err
	}
	if p.Told, err = notice.SettingsOf(ctx, tx, p.One.ID); err != nil {
		return err
	}
	p.ToldPeople, err = notice.Recipients(ctx, tx, p.Told)
	return err
}

// newsOf completes lines with their programs and reviews.
func (v *visit) newsOf(ctx context.Context, tx tenants.Tx, lines []engine.Line) ([]news, error) {
	var asking [][16]byte
	for _, line := range lines {
		if line.Standing == engine.StandingPerson {
			asking = append(asking, line.Run.ID)
		}
	}
	asked, err := v.s.Reviews.OpenOfRuns(ctx, tx, asking, v.user)
	if err != nil {
		return nil, err
	}
	all := make([]news, len(lines))
	for i, line := range lines {
		version, err := pipeline.VersionByNumber(ctx, tx, line.Run.PipelineID, line.Run.Version)
		if err != nil {
			return nil, err
		}
		all[i] = newsOf(v.discreet(line), version.Program, asked[line.Run.ID], v.user)
	}
	return all, nil
}

// discreet leaves the amounts out of a line where the person may not see money.
func (v *visit) discreet(line engine.Line) engine.Line {
	line.Reason = v.reasonOf(line.Wait, line.Reason)
	return line
}

// reasonOf is why a wait was opened, without amounts for who may not see money.
func (v *visit) reasonOf(kind engine.WaitKind, reason string) string {
	if kind == engine.WaitCap && !v.maySeeMoney() {
		return "The AI spend cap allows no further call."
	}
	return reason
}

// maySeeMoney decides about every amount on a page, those in words included.
func (v *visit) maySeeMoney() bool { return v.me.Role.May(tenants.SeeMoney) }

// uses tells whether the pipeline may spend, or has spent, a kind of funds.
func (p pipelineView) uses(funds ledger.Funds, standing ledger.Standing) bool {
	return standing.Spent > 0 || p.Version.Program != nil && fundsOf(p.Version.Program)[funds]
}

func (p pipelineView) mayStart() bool { return p.v.me.Role.May(tenants.StartRuns) && p.One.Live > 0 }

// actions start a run with the person's own data, or at once with the sample.
func (p pipelineView) actions() ui.Actions {
	actions := ui.Actions{}
	if p.mayBuild() {
		actions = append(actions, ui.Button{Text: "Edit", Icon: ui.IconPencil, Href: p.v.path("pipelines", p.One.ID.String(), "draft"), TestID: "edit"})
	}
	if !p.mayStart() {
		return actions
	}
	if p.Version.Document.Sample != nil {
		actions = append(actions, ui.PostButton{
			Action: p.v.path("pipelines", p.One.ID.String(), "sample"), Hidden: []ui.Hidden{{Name: "key", Value: p.Key}},
			Button: ui.Button{Text: "Run with sample", TestID: "run-sample"},
		})
	}
	return append(actions, ui.Button{Text: "Start a run", Kind: ui.Primary, Icon: ui.IconPlay, Href: p.v.path("pipelines", p.One.ID.String(), "start"), TestID: "start-run"})
}

// lead is what the pipeline does, or that it does nothing yet.
func (p pipelineView) lead() ui.Sentence {
	if p.One.Live == 0 {
		return ui.Sentence{ui.Strong("Not published yet."), ui.Plain(" It can run once it is published.")}
	}
	return ui.Words(p.Version.Document.Note)
}

// facts are about the live version: the draft concerns nobody who runs it.
func (p pipelineView) facts() ui.Facts {
	facts := ui.Facts{{Label: "Runs", Value: ui.Count(p.One.Runs)}}
	if p.One.Live > 0 {
		facts = append(ui.Facts{
			{Label: "Live version", Rich: ui.Sentence{ui.LinkTo("v"+strconv.Itoa(p.One.Live), p.v.path("pipelines", p.One.ID.String(), "versions"))}},
			{Label: "Published", Value: ui.When(p.Version.PublishedAt, p.v.now, p.v.zone())},
		}, facts...)
	}
	if limit := p.Version.Document.RunCap; limit != nil && p.v.maySeeMoney() {
		facts = append(facts, ui.Pair{Label: "Cap of a run", Value: ui.Dollars(*limit)})
	}
	return facts
}

func (p pipelineView) runRows() []ui.Row {
	var rows []ui.Row
	for _, n := range p.News {
		badge := n.badge()
		row := ui.Row{
			Name: n.Run.Name, Href: p.v.path("runs", n.Run.ID.String()), Badge: &badge, Reason: n.reason(p.v.now, p.v.zone()),
			EndNote: "#" + strconv.FormatInt(n.Run.Number, 10),
		}
		if p.v.maySeeMoney() && n.CostMicros > 0 {
			row.End = ui.Dollars(n.CostMicros)
		}
		rows = append(rows, row)
	}
	return rows
}

// sampleRun starts a run with the pipeline's own sample in one press.
func (s *Server) sampleRun(v *visit) error {
	id, err := idParam[pipeline.Pipeline](v, "pipeline")
	if err != nil {
		return err
	}
	key := v.FormValue("key")
	var run engine.Run
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		version, err := liveVersion(ctx, tx, id)
		if err != nil {
			return err
		}
		run, err = v.startSample(ctx, tx, id, version.Document, key)
		return err
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("runs", run.ID.String()))
}

// liveVersion reads the version that a new run takes.
func liveVersion(ctx context.Context, tx tenants.Tx, id pipeline.ID) (pipeline.Version, error) {
	one, err := pipeline.ByID(ctx, tx, id)
	if err != nil {
		return pipeline.Version{}, err
	}
	if one.Live == 0 {
		return pipeline.Version{}, engine.ErrNotLive
	}
	return pipeline.VersionByNumber(ctx, tx, id, one.Live)
}

// monthName is the name of the month that a cap counts.
func monthName(month ledger.MonthStatus) string {
	zone, err := time.LoadLocation(month.Zone)
	if err != nil {
		zone = time.UTC
	}
	return month.From.In(zone).Format("January")
}
