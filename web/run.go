package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// runView is one run, or one item, round or branch of it: the sentence, where its time
// and money went, every step, and the panel of one of them.
type runView struct {
	v         *visit
	Now       time.Time
	News      news
	View      engine.View
	Passages  []passage
	Reviews   map[engine.StepRunID]review.Detail
	Money     []runMoney // empty where she may not see it
	Input     engine.Preview
	Result    *engine.Preview
	Findings  []engine.Finding
	Pauses    []tenants.Entry // who paused and resumed the run, newest first
	Versions  engine.Versions
	Relatives engine.Relatives
	Hands     []tenants.Entry // what else people did to it
	Key       string          // of the form that pauses or resumes
	Chosen    string          // id of the step whose panel is asked for
	Panel     *panelView
	TrueTime  bool // waits are not folded
	From      int  // first row of the timeline, if it has too many for one page
}

// Bounds of one page.
const (
	rowsPerPage   = 200
	reviewsOnPage = 10
)

// runPage is the page of a run, and with a step in its address that of the step: one
// page, since on a desk they stand side by side.
func (s *Server) runPage(v *visit) error {
	view, err := s.readRun(v)
	if elsewhere, ok := errors.AsType[*inOtherPart](err); ok {
		return v.redirect(v.path("runs", v.Param("run"), "parts", elsewhere.part.String(), "steps", v.Param("step")))
	}
	if err != nil {
		return err
	}
	frame := v.frame(view.title(), inRuns)
	frame.Live = !view.View.Run.State.Final()
	if v.QueryParam("again") != "" {
		frame.Notices = append(frame.Notices, ui.Notice{Text: ui.Words("This form had started this run before, so nothing new was started.")})
	}
	return v.page(http.StatusOK, frame, runBody(view))
}

// readRun reads all that the page or the stream of a run shows.
func (s *Server) readRun(v *visit) (runView, error) {
	view := runView{v: v, Key: newFormKey(), Chosen: v.Param("step"), TrueTime: v.QueryParam("time") == "true"}
	if view.Chosen == "" {
		view.Chosen = v.QueryParam("step")
	}
	view.From, _ = strconv.Atoi(v.QueryParam("from")) // what is no number is the beginning
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return view, err
	}
	part, err := v.partID()
	if err != nil {
		return view, err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id, part) })
	return view, err
}

// read collects everything in one transaction, so that the sentence, the timeline and
// the panel tell of the same moment.
func (r *runView) read(ctx context.Context, tx tenants.Tx, id engine.RunID, part engine.StepRunID) error {
	r.Now = tx.Now
	var err error
	if r.View, err = engine.ViewOf(ctx, tx, id, part); err != nil {
		return err
	}
	history, err := engine.HistoryOf(ctx, tx, id, r.shown())
	if err != nil {
		return err
	}
	r.Passages = passages(r.View, history)
	if r.Relatives, err = engine.RelativesOf(ctx, tx, r.View.Run, r.View.Steps); err != nil {
		return err
	}
	if err := r.readNews(ctx, tx); err != nil {
		return err
	}
	if err := r.readReviews(ctx, tx); err != nil {
		return err
	}
	if r.v.maySeeMoney() && !r.isPart() {
		if r.Money, err = readRunMoney(ctx, tx, id, r.View.Program); err != nil {
			return err
		}
	}
	if err := r.readEnds(ctx, tx); err != nil {
		return err
	}
	return r.readPanel(ctx, tx)
}

// shown are the executions that the page draws.
func (r *runView) shown() []engine.StepRunID {
	ids := make([]engine.StepRunID, len(r.View.Steps))
	for i, step := range r.View.Steps {
		ids[i] = step.ID
	}
	return ids
}

// readNews reads what the sentence at the head is made of.
func (r *runView) readNews(ctx context.Context, tx tenants.Tx) error {
	if r.isPart() {
		return r.readPartNews(ctx, tx)
	}
	line, err := engine.LineByID(ctx, tx, r.View.Run.ID)
	if err != nil {
		return err
	}
	asked, err := r.v.s.Reviews.OpenOfRuns(ctx, tx, [][16]byte{r.View.Run.ID}, r.v.user)
	if err != nil {
		return err
	}
	r.News = newsOf(r.v.discreet(line), r.View.Program, asked[r.View.Run.ID], r.v.user)
	if r.Findings, err = engine.FindingsOf(ctx, tx, r.View.Run.ID); err != nil {
		return err
	}
	if r.Versions, err = engine.VersionsOf(ctx, tx, r.View.Run); err != nil {
		return err
	}
	return r.readHands(ctx, tx)
}

// readReviews reads what people were asked and answered.
func (r *runView) readReviews(ctx context.Context, tx tenants.Tx) error {
	r.Reviews = map[engine.StepRunID]review.Detail{}
	for _, p := range r.Passages {
		if p.Step == nil || p.Step.Kind != pipeline.KindReview && !p.askedWhetherItArrived() {
			continue
		}
		if len(r.Reviews) == reviewsOnPage {
			break
		}
		detail, err := r.v.s.Reviews.ByStepRun(ctx, tx, p.Step.ID)
		if errors.Is(err, review.ErrNotFound) {
			continue // the question could not be asked, which the step's failure tells
		}
		if err != nil {
			return err
		}
		r.Reviews[p.Step.ID] = detail
	}
	return nil
}

// readEnds reads what the run began with and what it handed back.
func (r *runView) readEnds(ctx context.Context, tx tenants.Tx) error {
	run, input, result := r.View.Run, r.View.Run.Input, r.View.Run.Result
	if r.isPart() {
		input, result = r.View.Part.Input, r.View.Part.Output
	}
	var err error
	if !input.IsZero() {
		if r.Input, err = engine.PreviewOf(ctx, tx, run.ID, input, inputBytes); err != nil {
			return err
		}
	}
	r.Result, err = r.preview(ctx, tx, result)
	return err
}

// mayChange tells whether she can still stop the run.
func (r *runView) mayChange() bool {
	return r.v.me.Role.May(tenants.StartRuns) && !r.View.Run.State.Final()
}

// path is an address under the run.
func (r *runView) path(parts ...string) string {
	return r.v.path(append([]string{"runs", r.View.Run.ID.String()}, parts...)...)
}

// base is an address under what the page shows: the run or a part of it.
func (r *runView) base(parts ...string) string {
	if r.isPart() {
		parts = append([]string{"parts", r.View.Part.ID.String()}, parts...)
	}
	return r.path(parts...)
}

// title is what the tab says: the standing first, since tabs are narrow.
func (r *runView) title() string {
	if r.isPart() {
		return r.News.word() + ": " + r.partName() + ", " + r.View.Run.Name
	}
	return r.News.word() + ": " + r.View.Run.Name
}

// ended tells whether nothing on the page will change any more.
func (r *runView) ended() bool {
	return r.View.Run.State.Final() || r.isPart() && !r.View.Part.State.Open()
}

// region is the part of the page that the stream keeps fresh.
func (r *runView) region() ui.LiveRegion {
	region := ui.LiveRegion{ID: "run", Say: r.sentence().String(), Title: r.title() + " · " + r.v.me.Tenant.Name + " · Tollgate"}
	if !r.ended() {
		pairs := []string{"version", strconv.FormatUint(r.View.Version, 10), "step", r.Chosen}
		if r.isPart() {
			pairs = append(pairs, "part", r.View.Part.ID.String())
		}
		region.Stream = r.path("live") + r.query(pairs...)
	}
	return region
}

// head is where one is, the sentence, and what one can do.
func (r *runView) head() ui.PageHead {
	badge := r.News.badge()
	if r.stuck() != nil {
		badge = ui.Badge{Status: ui.Stuck}
	}
	head := ui.PageHead{
		Crumbs: r.crumbs(), Title: r.View.Run.Name, Lead: r.sentence(), Actions: r.actions(),
		Meta: []templ.Component{badge, ui.LiveDot{AsOf: inSentence(ui.When(r.Now, r.Now, r.v.zone())), Refresh: r.here(), Ended: r.ended()}},
	}
	if r.isPart() {
		head.Title, head.Over = r.partTitle(), r.partOver()
	}
	return head
}

// crumbs lead from the runs down to what the page shows.
func (r *runView) crumbs() []ui.Link {
	run := r.View.Run
	crumbs := runCrumbs(r.v, run)
	if !r.isPart() {
		crumbs[len(crumbs)-1].Href = ""
		return crumbs
	}
	crumbs = append(crumbs, partCrumbs(r.v, run, r.View.Program, r.View.Around)...)
	return append(crumbs, ui.Link{Text: r.partName()})
}

// runCrumbs lead to a run.
func runCrumbs(v *visit, run engine.Run) []ui.Link {
	return []ui.Link{
		{Text: "Runs", Href: v.path("runs")},
		{Text: run.PipelineName, Href: v.path("pipelines", run.PipelineID.String())},
		{Text: "#" + strconv.FormatInt(run.Number, 10), Href: v.path("runs", run.ID.String())},
	}
}

// here is the address of the page as it is shown.
func (r *runView) here() string {
	if r.v.Param("step") == "" && r.Chosen == "" {
		return r.base() + r.query()
	}
	return r.base("steps", r.Chosen) + r.query()
}

// query keeps how the timeline is shown, with more names and values.
func (r *runView) query(pairs ...string) string {
	if r.TrueTime {
		pairs = append(pairs, "time", "true")
	}
	if r.From > 0 {
		pairs = append(pairs, "from", strconv.Itoa(r.From))
	}
	return queryOf(pairs...)
}

// actions has one primary button at most: to answer, for who is asked.
func (r *runView) actions() ui.Actions {
	var actions ui.Actions
	if r.isPart() {
		return r.askedActions(r.itemActions())
	}
	if r.News.Wait == engine.WaitCap && r.v.maySeeMoney() {
		actions = append(actions, ui.Button{Text: "See the caps", Icon: ui.IconCap, Href: r.v.path("caps"), TestID: "see-caps"})
	}
	if r.View.Run.State.Final() && r.v.me.Role.May(tenants.StartRuns) {
		actions = append(actions, ui.Button{Text: "Start another run", Href: r.v.path("pipelines", r.View.Run.PipelineID.String(), "start")})
	}
	if r.View.Run.State == engine.RunFailed && r.v.me.Role.May(tenants.StartRuns) {
		actions = append(actions, ui.Button{Text: "Try the failed step again", Kind: ui.Primary, Icon: ui.IconRetry, Href: r.path("retry"), TestID: "retry-run"})
	}
	if pause := r.pauseButton(); pause != nil {
		actions = append(actions, pause)
	}
	if r.mayChange() {
		actions = append(actions, ui.Button{Text: "Cancel run", Href: r.path("cancel"), TestID: "cancel-run"})
	}
	if r.News.Wait == engine.WaitEvent && !engine.IsCallback(r.News.EventKey) && r.mayChange() {
		actions = append(actions, ui.Button{Text: "Send the event", Href: r.v.path("events", "send") + queryOf("name", r.News.EventName, "key", r.News.EventKey)})
	}
	return r.askedActions(actions)
}

// askedActions adds the way to answer, for who is asked.
func (r *runView) askedActions(actions ui.Actions) ui.Actions {
	for _, asked := range r.News.Asked {
		if asked.Asks(r.v.user) {
			return append(actions, ui.Button{Text: "Review and decide", Kind: ui.Primary, Href: r.v.path("reviews", asked.Review.String()), TestID: "review"})
		}
	}
	return actions
}

// facts count only steps that can still be reached: a way that was not taken is no step
// of this run.
func (r *runView) facts() ui.Facts {
	if r.isPart() {
		return r.partFacts()
	}
	run := r.View.Run
	started := ui.WhenBrief(run.CreatedAt, r.Now, r.v.zone())
	if run.StartedName != "" {
		started += " by " + run.StartedName
	}
	facts := ui.Facts{
		{Label: "Version", Rich: r.versionFact()},
		{Label: "Started", Value: started},
		{Label: "Steps", Value: r.doneWords()},
	}
	if r.Relatives.Above != nil {
		facts = append(facts, ui.Pair{Label: "Part of", Rich: r.aboveFact()})
	}
	if !run.Origin.IsZero() {
		facts = append(facts, ui.Pair{Label: "Made from", Rich: ui.Sentence{ui.LinkTo("an earlier run", r.v.path("runs", run.Origin.String())),
			ui.Plain(", again from “"), ui.Name(stepName(r.View.Program, run.OriginStep)), ui.Plain("”")}})
	}
	if run.Sample {
		facts = append(facts, ui.Pair{Label: "Data", Value: "Sample"})
	}
	return facts
}

// doneWords count the steps that are done; rounds and branches are no steps.
func (r *runView) doneWords() string {
	done, all := 0, 0
	for _, p := range r.Passages {
		if p.isPart() {
			continue
		}
		all++
		if p.Step != nil && p.Step.State == engine.StepDone {
			done++
		}
	}
	return ui.Count(int64(done)) + " of " + ui.Count(int64(all)) + " done"
}

// inputFields name the parts of what the run started with, or of an item.
func (r *runView) inputFields() []pipeline.Field {
	if !r.isPart() {
		return r.View.Program.Document().Input
	}
	var fields []pipeline.Field
	eachPart(r.Input.Bytes, func(name string, part json.RawMessage) bool {
		field := pipeline.Field{Name: name, Label: sentenceCase(spaced(name))}
		if partOfRecord(part, "amount") != nil && partOfRecord(part, "currency") != nil {
			field.Type = pipeline.TypeMoney
		}
		fields = append(fields, field)
		return true
	})
	return fields
}

// resultFields give the parts of the run's result their order.
func (r *runView) resultFields() []pipeline.Field {
	var fields []pipeline.Field
	if r.isPart() {
		return nil
	}
	for _, value := range r.View.Program.Result() {
		fields = append(fields, pipeline.Field{Name: value.Name, Label: sentenceCase(spaced(value.Name))})
	}
	return fields
}
