package web

import (
	"context"
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

// runView is one run: the sentence, where its time and money went, every step, and the
// panel of one of them.
type runView struct {
	v        *visit
	Now      time.Time
	News     news
	Progress engine.Progress
	Passages []passage
	Reviews  map[engine.StepRunID]review.Detail
	Money    []runMoney // empty where she may not see it
	Input    engine.Preview
	Result   *engine.Preview
	Chosen   string // id of the step whose panel is asked for
	Panel    *panelView
	TrueTime bool // waits are not folded
	From     int  // first row of the timeline, if it has too many for one page
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
	if err != nil {
		return err
	}
	frame := v.frame(view.title(), inRuns)
	frame.Live = !view.Progress.Run.State.Final()
	if v.QueryParam("again") != "" {
		frame.Notices = append(frame.Notices, ui.Notice{Text: ui.Words("This form had started this run before, so nothing new was started.")})
	}
	return v.page(http.StatusOK, frame, runBody(view))
}

// readRun reads all that the page or the stream of a run shows.
func (s *Server) readRun(v *visit) (runView, error) {
	view := runView{v: v, Chosen: v.Param("step"), TrueTime: v.QueryParam("time") == "true"}
	if view.Chosen == "" {
		view.Chosen = v.QueryParam("step")
	}
	view.From, _ = strconv.Atoi(v.QueryParam("from")) // what is no number is the beginning
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return view, err
	}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) })
	return view, err
}

// read collects everything in one transaction, so that the sentence, the timeline and
// the panel tell of the same moment.
func (r *runView) read(ctx context.Context, tx tenants.Tx, id engine.RunID) error {
	r.Now = tx.Now
	line, err := engine.LineByID(ctx, tx, id)
	if err != nil {
		return err
	}
	if r.Progress, err = engine.ProgressOf(ctx, tx, id); err != nil {
		return err
	}
	history, err := engine.HistoryOf(ctx, tx, id)
	if err != nil {
		return err
	}
	r.Passages = passages(r.Progress, history)
	asked, err := r.v.s.Reviews.OpenOfRuns(ctx, tx, [][16]byte{id})
	if err != nil {
		return err
	}
	r.News = newsOf(r.v.discreet(line), r.Progress.Program, asked[id], r.v.user)
	if err := r.readReviews(ctx, tx); err != nil {
		return err
	}
	if r.v.maySeeMoney() {
		if r.Money, err = readRunMoney(ctx, tx, id, r.Progress.Program); err != nil {
			return err
		}
	}
	if err := r.readEnds(ctx, tx); err != nil {
		return err
	}
	return r.readPanel(ctx, tx)
}

// readReviews reads what people were asked and answered.
func (r *runView) readReviews(ctx context.Context, tx tenants.Tx) error {
	r.Reviews = map[engine.StepRunID]review.Detail{}
	for _, p := range r.Passages {
		if p.Step == nil || p.Step.Kind != pipeline.KindReview {
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
	run := r.Progress.Run
	var err error
	if r.Input, err = engine.PreviewOf(ctx, tx, run.ID, run.Input, inputBytes); err != nil || run.Result.IsZero() {
		return err
	}
	result, err := engine.PreviewOf(ctx, tx, run.ID, run.Result, previewBytes)
	r.Result = &result
	return err
}

// mayChange tells whether she can still stop the run.
func (r *runView) mayChange() bool {
	return r.v.me.Role.May(tenants.StartRuns) && !r.Progress.Run.State.Final()
}

// path is an address under the run.
func (r *runView) path(parts ...string) string {
	return r.v.path(append([]string{"runs", r.Progress.Run.ID.String()}, parts...)...)
}

// title is what the tab says: the standing first, since tabs are narrow.
func (r *runView) title() string { return r.News.word() + ": " + r.Progress.Run.Name }

// region is the part of the page that the stream keeps fresh.
func (r *runView) region() ui.LiveRegion {
	region := ui.LiveRegion{ID: "run", Say: r.News.sentence(r.Now, r.v.zone()).String(), Title: r.title() + " · " + r.v.me.Tenant.Name + " · Tollgate"}
	if !r.Progress.Run.State.Final() {
		region.Stream = r.path("live") + r.query("version", strconv.FormatUint(r.Progress.Version, 10), "step", r.Chosen)
	}
	return region
}

// head is where one is, the sentence, and what one can do.
func (r *runView) head() ui.PageHead {
	run, badge := r.Progress.Run, r.News.badge()
	return ui.PageHead{
		Crumbs: []ui.Link{
			{Text: "Runs", Href: r.v.path("runs")},
			{Text: run.PipelineName, Href: r.v.path("pipelines", run.PipelineID.String())},
			{Text: "#" + strconv.FormatInt(run.Number, 10)},
		},
		Title: run.Name, Lead: r.News.sentence(r.Now, r.v.zone()), Actions: r.actions(),
		Meta: []templ.Component{badge, ui.LiveDot{AsOf: inSentence(ui.When(r.Now, r.Now, r.v.zone())), Refresh: r.here(), Ended: run.State.Final()}},
	}
}

// here is the address of the page as it is shown.
func (r *runView) here() string {
	if r.v.Param("step") == "" && r.Chosen == "" {
		return r.path() + r.query()
	}
	return r.path("steps", r.Chosen) + r.query()
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
	if r.Progress.Run.State.Final() && r.v.me.Role.May(tenants.StartRuns) {
		actions = append(actions, ui.Button{Text: "Start another run", Href: r.v.path("pipelines", r.Progress.Run.PipelineID.String(), "start")})
	}
	if r.mayChange() {
		actions = append(actions, ui.Button{Text: "Cancel run", Href: r.path("cancel"), TestID: "cancel-run"})
	}
	if r.News.Wait == engine.WaitEvent && r.mayChange() {
		actions = append(actions, ui.Button{Text: "Send the event", Href: r.v.path("events", "send") + queryOf("name", r.News.EventName, "key", r.News.EventKey)})
	}
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
	run := r.Progress.Run
	started := ui.WhenBrief(run.CreatedAt, r.Now, r.v.zone())
	if run.StartedName != "" {
		started += " by " + run.StartedName
	}
	done := 0
	for _, p := range r.Passages {
		if p.Step != nil && p.Step.State == engine.StepDone {
			done++
		}
	}
	facts := ui.Facts{
		{Label: "Version", Rich: ui.Sentence{ui.LinkTo("v"+strconv.Itoa(run.Version), r.v.path("pipelines", run.PipelineID.String()))}},
		{Label: "Started", Value: started},
		{Label: "Steps", Value: ui.Count(int64(done)) + " of " + ui.Count(int64(len(r.Passages))) + " done"},
	}
	if run.Sample {
		facts = append(facts, ui.Pair{Label: "Data", Value: "Sample"})
	}
	return facts
}

// resultFields give the parts of the run's result their order.
func (r *runView) resultFields() []pipeline.Field {
	var fields []pipeline.Field
	for _, value := range r.Progress.Program.Result() {
		fields = append(fields, pipeline.Field{Name: value.Name, Label: sentenceCase(spaced(value.Name))})
	}
	return fields
}
