package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
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
		if p.Step == nil || p.Step.Kind != pipeline.KindReview || p.Step.State == engine.StepFailed && len(p.Waits) == 0 {
			continue
		}
		if len(r.Reviews) == reviewsOnPage {
			break
		}
		detail, err := r.v.s.Reviews.ByStepRun(ctx, tx, p.Step.ID)
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

func (r *runView) actions() ui.Actions {
	var actions ui.Actions
	if r.Progress.Run.State.Final() && r.v.me.Role.May(tenants.StartRuns) {
		actions = append(actions, ui.Button{Text: "Start another run", Href: r.v.path("pipelines", r.Progress.Run.PipelineID.String(), "start")})
	}
	if r.mayChange() {
		actions = append(actions, ui.Button{Text: "Cancel run", Href: r.path("cancel"), TestID: "cancel-run"})
	}
	for _, asked := range r.News.Asked {
		if asked.Asks(r.v.user) {
			return append(actions, ui.Button{Text: "Review and decide", Kind: ui.Primary, Href: r.v.path("reviews", asked.Review.String()), TestID: "review"})
		}
	}
	return actions
}

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

// end is when the run ended, or now.
func (r *runView) end() time.Time {
	if ended := r.Progress.Run.EndedAt; ended != nil {
		return *ended
	}
	return r.Now
}

func (r *runView) split() ui.Split {
	return divide(r.Passages, r.Progress.Run.CreatedAt, r.end()).split()
}

// timeline draws the rows of the page that is shown.
func (r *runView) timeline() ui.Timeline {
	run := r.Progress.Run
	line := ui.Timeline{
		ID: "timeline", Caption: "Steps of this run in order, with status, time span, duration and cost",
		Start: run.CreatedAt, Now: r.end(), Ended: run.State.Final(), TrueScale: r.TrueTime || !r.folds(), Loc: r.v.zone(),
	}
	from, to := r.window()
	for _, p := range r.Passages[from:to] {
		line.Steps = append(line.Steps, r.row(p))
	}
	return line
}

// worthFolding is how long a wait must be for the axis to leave it out.
const worthFolding = 10 * time.Second

// folds tells whether the run has waited long enough for its waits to be folded.
func (r *runView) folds() bool {
	spent := divide(r.Passages, r.Progress.Run.CreatedAt, r.end())
	return r.end().Sub(r.Progress.Run.CreatedAt)-spent[ui.Running] >= worthFolding
}

// window is which rows of a long timeline stand on the page: those asked for, or those
// around the step that the run is at.
func (r *runView) window() (from, to int) {
	if len(r.Passages) <= rowsPerPage {
		return 0, len(r.Passages)
	}
	from = max(0, r.From)
	if r.v.QueryParam("from") == "" {
		for i, p := range r.Passages {
			if p.Node.ID() == r.focus() {
				from = i - rowsPerPage/2
			}
		}
	}
	from = max(0, min(from, len(r.Passages)-rowsPerPage))
	return from, from + rowsPerPage
}

// focus is the step that the page is about.
func (r *runView) focus() string {
	if r.Chosen != "" {
		return r.Chosen
	}
	return r.News.StepID
}

func (r *runView) row(p passage) ui.TimelineStep {
	row := ui.TimelineStep{
		ID: "step-" + p.Node.ID(), Number: p.Node.Number, Name: p.Node.Step.Name, Href: r.path("steps", p.Node.ID()) + r.query(),
		Depth: p.Node.Depth - 1, Chosen: r.Panel != nil && r.Panel.Passage.Node == p.Node, Badge: p.badge(), Group: p.isGroup(),
		Bars: p.stretches(), Attempts: p.ticks(), Time: p.took(r.Now), Reason: r.because(p),
	}
	if p.Step != nil && r.v.maySeeMoney() && p.Step.CostMicros > 0 {
		row.Cost = ui.Dollars(p.Step.CostMicros)
	}
	return row
}

// because stands under a row where somebody could act or wonder.
func (r *runView) because(p passage) ui.Sentence {
	switch {
	case p.Step == nil:
		return nil
	case p.Step.Failure != nil && p.Step.State == engine.StepFailed && !p.isGroup():
		return ui.Sentence{ui.Name(p.Step.Failure.Message)}
	case p.Step.Chosen != "":
		if list := p.Node.Child(p.Step.Chosen); list != nil {
			return ui.Sentence{ui.Plain("Took “"), ui.Name(list.Name), ui.Plain("”")}
		}
	case p.Wait == nil:
		return nil
	case p.Wait.Kind == engine.WaitReview:
		return r.askedAt(p)
	case p.Wait.Kind == engine.WaitRetry, p.Wait.Kind == engine.WaitCap:
		return ui.Sentence{ui.Name(r.v.reasonOf(p.Wait.Kind, p.Wait.Reason))}
	}
	return nil
}

// askedAt says who can answer, how far it is, and until when.
func (r *runView) askedAt(p passage) ui.Sentence {
	n := r.standingOf(p)
	out := ui.Sentence{ui.Strong(sentenceCase(n.people("You", " or "))), ui.Plain(" can answer.")}
	detail, ok := r.Reviews[p.Step.ID]
	if ok && detail.Needed() > 1 {
		out = append(out, ui.Plain(fmt.Sprintf(" %d of %d agreed.", detail.Agreed(), detail.Needed())))
	}
	if ok && detail.DueAt != nil {
		out = append(out, ui.Plain(" Due "+inSentence(ui.WhenBrief(*detail.DueAt, r.Now, r.v.zone()))+"."))
	}
	return out
}

// standingOf is the news of one waiting step.
func (r *runView) standingOf(p passage) news {
	n := newsOf(engine.Line{
		Run: r.Progress.Run, StepID: p.Node.ID(), StepName: p.Node.Step.Name, Since: p.Wait.OpenedAt, Due: p.Wait.Due,
		Wait: p.Wait.Kind, Reason: r.v.reasonOf(p.Wait.Kind, p.Wait.Reason), Attempt: p.Step.Attempt,
	}, r.Progress.Program, nil, r.v.user)
	for _, asked := range r.News.Asked {
		if asked.StepRun == p.Step.ID {
			n.Asked = append(n.Asked, asked)
		}
	}
	return n
}

// views are the ways of showing the timeline.
func (r *runView) views() ui.Filters {
	folded, exact := *r, *r
	folded.TrueTime, exact.TrueTime = false, true
	return ui.Filters{Label: "Timeline view", Items: []ui.Filter{
		{Text: "Waits folded", Href: folded.here(), Here: !r.TrueTime},
		{Text: "True scale", Href: exact.here(), Here: r.TrueTime},
	}}
}

// pager leads through a timeline that is too long for one page.
func (r *runView) pager() ui.Pager {
	from, to := r.window()
	pager := ui.Pager{Shown: "Steps " + ui.Count(int64(from+1)) + "–" + ui.Count(int64(to)) + " of " + ui.Count(int64(len(r.Passages)))}
	other := *r
	if from > 0 {
		other.From = max(0, from-rowsPerPage)
		pager.Prev = ui.Link{Text: "Earlier steps", Href: r.path() + queryOf("from", strconv.Itoa(other.From))}
	}
	if to < len(r.Passages) {
		other.From = to
		pager.Next = ui.Link{Text: "Later steps", Href: r.path() + other.query()}
	}
	return pager
}

// runMoney is one kind of funds of a run against the cap that binds it.
type runMoney struct {
	Funds ledger.Funds
	Run   ledger.Standing
	Month *ledger.Standing // of the workspace, where the run has no cap of its own
	Name  string           // of the month
}

// readRunMoney reads the funds that the run has used or may use.
func readRunMoney(ctx context.Context, tx tenants.Tx, id engine.RunID, program *pipeline.Program) ([]runMoney, error) {
	cost, err := ledger.RunCost(ctx, tx, ledger.RunID(id))
	if err != nil {
		return nil, err
	}
	may := fundsOf(program)
	var all []runMoney
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		money := runMoney{Funds: funds, Run: cost.Of(funds)}
		if !may[funds] && money.Run.Spent == 0 && money.Run.Held == 0 {
			continue
		}
		if money.Run.Limit == nil {
			month, err := ledger.Month(ctx, tx)
			if err != nil {
				return nil, err
			}
			standing := month.Of(funds)
			money.Month, money.Name = &standing, monthName(month)
		}
		all = append(all, money)
	}
	return all, nil
}

// fundsOf are the funds that the models of a program are paid from.
func fundsOf(program *pipeline.Program) map[ledger.Funds]bool {
	funds := map[ledger.Funds]bool{}
	var walk func(nodes []*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			if ask := node.AI(); ask != nil {
				for _, model := range ask.Models {
					funds[fundsOfModel(model)] = true
				}
			}
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(program.Roots())
	return funds
}

func fundsOfModel(model string) ledger.Funds {
	if strings.HasPrefix(model, "practice/") {
		return ledger.Pretend
	}
	return ledger.Real
}

// words say what the bar shows, with whose cap it is.
func (m runMoney) words() ui.Sentence {
	unit := ""
	if m.Funds == ledger.Pretend {
		unit = " pretend"
	}
	out := ui.Sentence{ui.Strong(ui.Dollars(int64(m.Run.Spent)))}
	if m.Run.Limit != nil {
		out = append(out, ui.Plain(" of the run’s "), ui.Strong(ui.Dollars(int64(*m.Run.Limit))), ui.Plain(unit+" cap"))
	} else {
		out = append(out, ui.Plain(unit+" spent by this run"))
	}
	if m.Run.Held > 0 {
		out = append(out, ui.Plain(" · "+ui.Dollars(int64(m.Run.Held))+" reserved"))
	}
	if m.Run.Overrun > 0 {
		out = append(out, ui.Plain(" · "+ui.Dollars(int64(m.Run.Overrun))+" beyond what was reserved"))
	}
	if m.Month != nil && m.Month.Limit != nil {
		out = append(out, ui.Plain(". The workspace has spent "+ui.Dollars(int64(m.Month.Spent))+" of its "+ui.Dollars(int64(*m.Month.Limit))+" in "+m.Name+"."))
	}
	return out
}

// binding is where the place stands whose cap binds.
func (m runMoney) binding() ledger.Standing {
	if m.Month != nil {
		return *m.Month
	}
	return m.Run
}

// meter is the bar of the cap that binds, nil where there is none or it allows nothing.
func (m runMoney) meter() *ui.Meter {
	standing := m.binding()
	if standing.Limit == nil || *standing.Limit == 0 {
		return nil
	}
	meter := meterOf("Spent against the cap", standing)
	return &meter
}

func (m runMoney) note() string {
	switch {
	case m.Funds == ledger.Pretend:
		return "Pretend dollars: what the practice model would have cost. Nobody pays them."
	case m.binding().Limit == nil:
		return "No cap is set."
	}
	return ""
}

// resultFields give the parts of the run's result their order.
func (r *runView) resultFields() []pipeline.Field {
	var fields []pipeline.Field
	for _, value := range r.Progress.Program.Result() {
		fields = append(fields, pipeline.Field{Name: value.Name, Label: sentenceCase(spaced(value.Name))})
	}
	return fields
}
