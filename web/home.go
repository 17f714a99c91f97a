package web

import (
	"context"
	"fmt"
	"net/http"
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

// homeView is what needs me, what failed, what works, and what is spent.
type homeView struct {
	v       *visit
	Counts  engine.Counts
	Asked   []review.Waiting
	Failed  []news
	Working []news
	Month   ledger.MonthStatus
	First   bool   // nothing was ever run here
	Refusal string // who could run something, for those who may not
	Example pipeline.Template
	Many    int // templates there are
	Key     string
}

// How much of each list the home page shows, and how far back it looks for failures.
const (
	homeLines  = 4
	recentDays = 7
)

func (s *Server) home(v *visit) error {
	templates := pipeline.Templates()
	view := homeView{v: v, Example: templates[0], Many: len(templates), Key: newFormKey()}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) }); err != nil {
		return err
	}
	frame := v.frame("Home", inHome)
	if view.First {
		frame.Narrow = true
		return v.page(http.StatusOK, frame, firstDayBody(view))
	}
	return v.page(http.StatusOK, frame, homeBody(view))
}

func (h *homeView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	newest, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 1)
	if err != nil {
		return err
	}
	if h.Asked, err = h.v.s.Reviews.Inbox(ctx, tx, h.v.user); err != nil {
		return err
	}
	if h.First = len(newest.Lines) == 0 && len(h.Asked) == 0; h.First {
		return h.readHelpers(ctx, tx)
	}
	if h.Counts, err = engine.CountRuns(ctx, tx, h.since()); err != nil {
		return err
	}
	if h.Failed, err = h.newsOf(ctx, tx, engine.GroupFailed); err != nil {
		return err
	}
	if h.Working, err = h.newsOf(ctx, tx, engine.GroupOpen); err != nil {
		return err
	}
	if h.maySeeMoney() {
		h.Month, err = ledger.Month(ctx, tx)
	}
	return err
}

// readHelpers finds out whom to ask to run something, for those who may not.
func (h *homeView) readHelpers(ctx context.Context, tx tenants.Tx) error {
	if h.mayBuild() {
		return nil
	}
	members, err := tenants.Members(ctx, tx)
	h.Refusal = tenants.StartRuns.Refusal(members)
	return err
}

// newsOf reads the newest runs of a group, those that ended long ago left out.
func (h *homeView) newsOf(ctx context.Context, tx tenants.Tx, group engine.Group) ([]news, error) {
	page, err := engine.ListRuns(ctx, tx, engine.Filter{Group: group}, engine.RunID{}, homeLines)
	if err != nil {
		return nil, err
	}
	return h.v.newsOf(ctx, tx, endedSince(page.Lines, h.since()))
}

func (h homeView) since() time.Time { return h.v.now.AddDate(0, 0, -recentDays) }

func (h homeView) maySeeMoney() bool { return h.v.me.Role.May(tenants.SeeMoney) }

func (h homeView) mayBuild() bool { return h.v.me.Role.May(tenants.BuildPipelines) }

func endedSince(lines []engine.Line, since time.Time) []engine.Line {
	for i, line := range lines {
		if line.Run.EndedAt != nil && line.Run.EndedAt.Before(since) {
			return lines[:i]
		}
	}
	return lines
}

// title is the news of the page in a sentence or two.
func (h homeView) title() string {
	var news []string
	if n := len(h.Asked); n > 0 {
		news = append(news, count(n, "decision waits", "decisions wait")+" for you.")
	}
	if n := h.Counts.Capped; n > 0 {
		news = append(news, count(n, "run is", "runs are")+" stopped by the cap.")
	}
	if n := h.Counts.FailedToday; n > 0 {
		news = append(news, count(n, "run failed", "runs failed")+" in the last 7 days.")
	}
	if len(news) > 0 {
		return strings.Join(news, " ")
	}
	if h.Counts.Working > 0 {
		return "Nothing waits for you. " + count(h.Counts.Working, "run works", "runs work") + " on."
	}
	return "All is done. Nothing waits for you."
}

// lead is the rest of it: when this is, what works, and who else is waited for.
func (h homeView) lead() ui.Sentence {
	facts := []string{count(h.Counts.Working, "run is", "runs are") + " working"}
	if h.Counts.Working == 0 {
		facts[0] = "No run is working"
	}
	if n := h.Counts.Person; n > 0 {
		facts = append(facts, strings.ToLower(count(n, "run waits", "runs wait"))+" for people")
	}
	zone := h.v.zone()
	return ui.Words(h.v.now.In(zone).Format("Monday 2 January, 15:04 ") + ui.ZoneName(h.v.now, zone) + ". " + strings.Join(facts, ", ") + ".")
}

// count begins a sentence with a number, small ones in words: "Two runs failed".
func count(n int, one, many string) string {
	words := []string{"No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"}
	number := ui.Count(int64(n))
	if n >= 0 && n < len(words) {
		number = words[n]
	}
	if n == 1 {
		return number + " " + one
	}
	return number + " " + many
}

func (h homeView) asked() []ui.Row {
	var rows []ui.Row
	for _, one := range h.Asked[:min(len(h.Asked), homeLines)] {
		note := "no deadline"
		if one.DueAt != nil {
			note = "due " + inSentence(ui.WhenBrief(*one.DueAt, h.v.now, h.v.zone()))
		}
		about := ui.Sentence{ui.Name(one.PipelineName)}
		if one.RunName != "" {
			about = append(about, ui.Plain(" · "), ui.Name(one.RunName))
		}
		rows = append(rows, ui.Row{
			Name: one.Title, Href: h.v.path("reviews", one.Review.String()), EndNote: note,
			Reason: append(about, ui.Plain(" · asked "+inSentence(ui.WhenBrief(one.OpenedAt, h.v.now, h.v.zone())))),
		})
	}
	return rows
}

// inSentence puts the words for a day into the middle of a sentence.
func inSentence(when string) string {
	for _, day := range []string{"Today", "Tomorrow", "Yesterday"} {
		if rest, ok := strings.CutPrefix(when, day); ok {
			return strings.ToLower(day) + rest
		}
	}
	return when
}

func (h homeView) failed() []ui.Row {
	var rows []ui.Row
	for _, one := range h.Failed {
		row := h.row(one)
		row.EndNote = inSentence(ui.WhenBrief(one.Since, h.v.now, h.v.zone()))
		rows = append(rows, row)
	}
	return rows
}

func (h homeView) working() []ui.Row {
	var rows []ui.Row
	for _, one := range h.Working {
		row := h.row(one)
		if h.maySeeMoney() && one.CostMicros > 0 {
			row.EndPart = ui.Words(ui.Dollars(one.CostMicros))
		}
		rows = append(rows, row)
	}
	return rows
}

// row is one run with how it stands, in the words of the list of runs.
func (h homeView) row(one news) ui.Row {
	badge := one.badge()
	return ui.Row{
		Name: one.Run.Name, Href: h.v.path("runs", one.Run.ID.String()), Badge: &badge,
		Reason: append(ui.Sentence{ui.Name(runTitle(one.Run)), ui.Plain(" · ")}, one.reason(h.v.now, h.v.zone())...),
	}
}

// runTitle is how a run is called in lists.
func runTitle(run engine.Run) string {
	return fmt.Sprintf("%s #%d", run.PipelineName, run.Number)
}

// statusOf is how the place of a run is drawn.
func statusOf(standing engine.StandingState) ui.Status {
	return map[engine.StandingState]ui.Status{
		engine.StandingFailed: ui.Failed, engine.StandingCapped: ui.Cap, engine.StandingPerson: ui.Person,
		engine.StandingRetrying: ui.Retrying, engine.StandingWaiting: ui.Waiting, engine.StandingRunning: ui.Running,
		engine.StandingQueued: ui.Queued, engine.StandingPaused: ui.Paused, engine.StandingCompleted: ui.Done,
		engine.StandingCancelled: ui.Cancelled,
	}[standing]
}

// more is how many open runs the list leaves out.
func (h homeView) more() int {
	return h.Counts.Working + h.Counts.Person + h.Counts.Capped - len(h.Working)
}

// month is the name of the month that the cap counts.
func (h homeView) month() string {
	zone, err := time.LoadLocation(h.Month.Zone)
	if err != nil {
		zone = time.UTC
	}
	return h.Month.From.In(zone).Format("January")
}

func meterOf(what string, standing ledger.Standing) ui.Meter {
	meter := ui.Meter{Spent: int64(standing.Spent), Reserved: int64(standing.Held), What: what}
	if standing.Limit != nil {
		meter.Cap = int64(*standing.Limit)
	}
	return meter
}

// tryExample runs the first template with its sample, if her role may.
func (h homeView) tryExample() templ.Component {
	return ui.PostButton{
		Action: h.v.path("templates", h.Example.Slug, "try"),
		Hidden: []ui.Hidden{{Name: "key", Value: h.Key}},
		Button: ui.Button{Text: "Run the example now", Kind: ui.Primary, Icon: ui.IconPlay, TestID: "run-example"},
	}
}
