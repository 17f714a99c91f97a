package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// Where people outside look at a run. The address is all that lets them in.
const (
	sharedRoot = "/s/"
	sharedPath = sharedRoot + ":share"
)

// sharedView is a run for the holder of a link: how its steps stand and when, and nothing
// of what it is about.
type sharedView struct {
	View     engine.View
	Passages []passage
	Expires  time.Time
	Zone     *time.Location
	Now      time.Time
	here     string
}

// mostShared bounds the rows of the page.
const mostShared = 300

// sharedRun shows the run behind a link. A link that opens nothing says so, whatever it is.
func (s *Server) sharedRun(v *visit) error {
	tenant, id, err := s.Engine.FindShare(v.ctx(), v.Param("share"))
	if err != nil {
		return err
	}
	view := sharedView{here: sharedRoot + v.Param("share"), Zone: time.UTC}
	err = s.DB.InTx(v.ctx(), tenant, func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx, id) })
	if err != nil {
		return err
	}
	around := v.alone(view.title())
	around.Zone = ui.Zone(view.Now, view.Zone)
	around.Foot = []ui.Link{{Text: "This link works until " + inSentence(ui.When(view.Expires, view.Now, view.Zone))}}
	return v.page(http.StatusOK, around, sharedBody(view))
}

func (s *sharedView) read(ctx context.Context, tx tenants.Tx, id engine.ShareID) error {
	s.Now = tx.Now
	share, err := engine.OpenShare(ctx, tx, id)
	if err != nil {
		return err
	}
	s.Expires = share.ExpiresAt
	if s.View, err = engine.ViewOf(ctx, tx, share.Run, engine.StepRunID{}); err != nil {
		return err
	}
	s.Passages = passages(s.View, engine.History{})
	return nil
}

// title has the pipeline's name: a run's own may be made of what it is about.
func (s sharedView) title() string {
	return s.View.Run.PipelineName + ", run " + ui.Count(s.View.Run.Number)
}

func (s sharedView) lead() ui.Sentence {
	run := s.View.Run
	began := "It began " + inSentence(ui.When(run.CreatedAt, s.Now, s.Zone)) + "."
	if run.EndedAt != nil {
		return ui.Words(began + " It ended " + inSentence(ui.When(*run.EndedAt, s.Now, s.Zone)) + ", " + ui.Duration(run.EndedAt.Sub(run.CreatedAt)) + " later.")
	}
	return ui.Words(began + " It has been going on for " + ui.Duration(s.Now.Sub(run.CreatedAt)) + ".")
}

// sharedWords say how a run stands.
var sharedWords = map[engine.RunState]ui.Badge{
	engine.RunCompleted: {Status: ui.Done}, engine.RunFailed: {Status: ui.Failed}, engine.RunCancelled: {Status: ui.Cancelled},
	engine.RunCancelling: {Status: ui.Cancelled, Words: "Being cancelled"}, engine.RunPaused: {Status: ui.Paused}, engine.RunPausing: {Status: ui.Paused},
	engine.RunQueued: {Status: ui.Queued}, engine.RunRunning: {Status: ui.Running, Words: "Under way"},
}

func (s sharedView) meta() []templ.Component { return []templ.Component{sharedWords[s.View.Run.State]} }

func (s sharedView) caption() string {
	return "Its steps in order; times in " + ui.ZoneName(s.Now, s.Zone) + "."
}

func (s sharedView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, p := range s.Passages[:min(len(s.Passages), mostShared)] {
		badge := ui.Badge{Status: p.badge().Status}
		if badge.Status == ui.Cap {
			badge.Status = ui.Waiting
		}
		cells := []ui.Cell{{Text: p.name()}, {Badge: &badge}, {Text: "–"}, {Text: "–"}}
		if number := p.number(); number != "" {
			cells[0].Text = number + " " + cells[0].Text
		}
		if p.Step != nil {
			cells[2].Text = ui.WhenBrief(p.Step.BegunAt, s.Now, s.Zone)
			if p.Step.EndedAt != nil {
				cells[3].Text = ui.Duration(p.Step.EndedAt.Sub(p.Step.BegunAt))
			}
			if p.Size != nil {
				cells[0].Small = ui.Plural(int64(p.Size.Parts), "item", "items")
			}
		}
		rows = append(rows, ui.TableRow{ID: "row-" + strconv.Itoa(len(rows)), Cells: cells})
	}
	return rows
}
