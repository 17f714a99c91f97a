package web

import (
	"context"
	"net/http"
	"slices"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// eventsView is the list of events with the runs that used each.
type eventsView struct {
	v      *visit
	Name   string // only events of this name
	Before engine.EventID
	Names  []string
	Lines  []engine.EventLine
	More   bool
}

// eventsPerPage is how many events one page lists.
const eventsPerPage = 50

// eventsPage lists what was sent in the workspace, newest first.
func (s *Server) eventsPage(v *visit) error {
	view := eventsView{v: v, Name: v.QueryParam("name")}
	if text := v.QueryParam("before"); text != "" {
		var err error
		if view.Before, err = tenants.ParseID[engine.Event](text); err != nil {
			return errNotFound
		}
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) }); err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame("Events", inRuns), eventsBody(view))
}

// read asks for one event more than a page holds, to know whether there is another page.
func (e *eventsView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	e.Lines, err = engine.ListEvents(ctx, tx, engine.EventFilter{Name: e.Name, Before: e.Before, Limit: eventsPerPage + 1})
	if err != nil {
		return err
	}
	if e.More = len(e.Lines) > eventsPerPage; e.More {
		e.Lines = e.Lines[:eventsPerPage]
	}
	if e.Names, err = engine.EventNames(ctx, tx); err != nil {
		return err
	}
	if e.Name != "" && !slices.Contains(e.Names, e.Name) {
		e.Names = append(e.Names, e.Name)
	}
	return nil
}

// address is that of the list with another name, or of its next page.
func (e eventsView) address(name string, before engine.EventID) string {
	page := ""
	if !before.IsZero() {
		page = before.String()
	}
	return e.v.path("events") + queryOf("name", name, "before", page)
}

func (e eventsView) filters() ui.Filters {
	filters := ui.Filters{Label: "Events by name", Scroll: true, Items: []ui.Filter{{Text: "All", Href: e.address("", engine.EventID{}), Here: e.Name == ""}}}
	for _, name := range e.Names {
		filters.Items = append(filters.Items, ui.Filter{Text: name, Href: e.address(name, engine.EventID{}), Here: name == e.Name})
	}
	return filters
}

func (e eventsView) rows() []ui.TableRow {
	var rows []ui.TableRow
	for _, line := range e.Lines {
		rows = append(rows, ui.TableRow{ID: "event-" + line.ID.String(), Cells: []ui.Cell{
			{Text: line.Name, Href: e.v.path("events", line.ID.String())},
			{Text: orDash(line.Key)},
			{Rich: e.v.usedBy(line)},
			{Text: ui.WhenBrief(line.SentAt, e.v.now, e.v.zone()), Small: "by " + line.Sender},
		}})
	}
	return rows
}

// usedBy names the runs that used an event, as far as they were read.
func (v *visit) usedBy(line engine.EventLine) ui.Sentence {
	if line.Used == 0 {
		return ui.Words("Unused")
	}
	var out ui.Sentence
	for i, use := range line.Uses {
		if i > 0 {
			out = append(out, ui.Plain(", "))
		}
		out = append(out, ui.LinkTo(use.Name, v.path("runs", use.Run.String(), "steps", use.StepRun.String())))
	}
	if rest := line.Used - len(line.Uses); rest > 0 {
		out = append(out, ui.Plain(" and "+restWords(line.Used, rest)))
	}
	if line.More {
		out = append(out, ui.Plain("; more follow"))
	}
	return out
}

// restWords counts the runs that are not named; beyond a bound nobody counted.
func restWords(used, rest int) string {
	if used > engine.MaxCounted {
		return "more than " + ui.Count(engine.MaxCounted) + " other runs"
	}
	return ui.Plural(int64(rest), "other run", "other runs")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func (e eventsView) caption() string {
	words := "Events of the last 30 days, newest first; times in " + ui.ZoneName(e.v.now, e.v.zone()) + "."
	if e.Name != "" {
		return "“" + e.Name + "”: " + inSentenceCase(words)
	}
	return words
}

// pager goes by the last event that was seen, so that new ones move nothing.
func (e eventsView) pager() ui.Pager {
	pager := ui.Pager{Shown: ui.Plural(int64(len(e.Lines)), "event", "events") + " on this page"}
	if !e.Before.IsZero() {
		pager.Prev = ui.Link{Text: "Back to the newest", Href: e.address(e.Name, engine.EventID{})}
	}
	if e.More {
		pager.Next = ui.Link{Text: "Older events", Href: e.address(e.Name, e.Lines[len(e.Lines)-1].ID)}
	}
	return pager
}

// eventView is one event: what it carried, and all that it set going.
type eventView struct {
	v    *visit
	Line engine.EventLine
}

// eventPage shows an event. Who has just sent it is told what came of it.
func (s *Server) eventPage(v *visit) error {
	id, err := idParam[engine.Event](v, "event")
	if err != nil {
		return err
	}
	view := eventView{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		view.Line, err = engine.EventByID(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	frame := v.frame("Event “"+view.Line.Name+"”", inRuns)
	frame.Notices = view.notices()
	return v.page(http.StatusOK, frame, eventBody(view))
}

// notices tell a sender what her form did.
func (e eventView) notices() []ui.Notice {
	words := ""
	switch e.v.QueryParam("sent") {
	case "now":
		words = "The event is sent. No run waits for it now; one that is under way and comes to wait for it within 30 days takes it."
		if e.Line.Used > 0 {
			words = "The event is sent, and " + ui.Plural(int64(e.Line.Used), "run goes", "runs go") + " on."
		}
	case "before":
		words = "This form had sent this event before, so nothing new was sent."
	default:
		return nil
	}
	return []ui.Notice{{Status: ui.Done, Text: ui.Words(words)}}
}

func (e eventView) facts() ui.Facts {
	return ui.Facts{
		{Label: "Key", Value: orDash(e.Line.Key)},
		{Label: "Sent", Value: sentenceCase(inSentence(ui.When(e.Line.SentAt, e.v.now, e.v.zone())))},
		{Label: "Sent by", Value: e.Line.Sender},
	}
}

func (e eventView) uses() []ui.Row {
	var rows []ui.Row
	for _, use := range e.Line.Uses {
		rows = append(rows, ui.Row{
			Reason:  ui.Sentence{ui.LinkTo(use.Name, e.v.path("runs", use.Run.String(), "steps", use.StepRun.String())), ui.Plain(", "), ui.Name(use.Pipeline), ui.Plain(" #" + ui.Count(use.Number))},
			EndNote: ui.WhenBrief(use.At, e.v.now, e.v.zone()),
		})
	}
	if rest := e.Line.Used - len(e.Line.Uses); rest > 0 {
		rows = append(rows, ui.Row{Reason: ui.Words("And " + restWords(e.Line.Used, rest) + ".")})
	}
	if e.Line.More {
		rows = append(rows, ui.Row{Reason: ui.Words("More runs wait for it and go on within seconds.")})
	}
	return rows
}
