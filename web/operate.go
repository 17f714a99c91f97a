package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// operateView is the installation as whoever runs it sees it: processes, queues, and
// what the watchdog found. Of workspaces it has the names, and nothing of what is in
// them.
type operateView struct {
	Now      time.Time
	Workers  []engine.WorkerLine
	Queues   []engine.QueueLine
	Count    engine.FindingCount
	Findings []engine.Finding
}

// findingsOnPage is how many findings the page lists.
const findingsOnPage = 100

func (s *Server) operatePage(v *visit) error {
	var view operateView
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error { return view.read(ctx, stx) })
	if err != nil {
		return err
	}
	frame := v.alone("Operations")
	frame.Zone = "UTC"
	return v.page(http.StatusOK, frame, operateBody(view))
}

func (o *operateView) read(ctx context.Context, stx tenants.SystemTx) error {
	o.Now = stx.Now
	since := stx.Now.Add(-engine.FindingsKept)
	var err error
	if o.Workers, err = engine.Workers(ctx, stx); err != nil {
		return err
	}
	if o.Queues, err = engine.QueueLines(ctx, stx); err != nil {
		return err
	}
	if o.Count, err = engine.CountFindings(ctx, stx, since); err != nil {
		return err
	}
	o.Findings, err = engine.Findings(ctx, stx, since, findingsOnPage)
	return err
}

// operates tells whether an address is that of somebody who runs the installation.
func (s *Server) operates(email string) bool { return slices.Contains(s.Operators, email) }

// admitOperator hides the pages about the installation from everybody else.
func (v *visit) admitOperator() error {
	return v.s.DB.InSystemTx(v.ctx(), func(ctx context.Context, stx tenants.SystemTx) error {
		user, err := tenants.UserByID(ctx, stx, v.user)
		if errors.Is(err, tenants.ErrNoUser) || err == nil && !v.s.operates(user.Email) {
			return errNotFound
		}
		return err
	})
}

// lead says whether all is well, worst first.
func (o operateView) lead() ui.Sentence {
	var out ui.Sentence
	switch alive := o.alive(); {
	case alive == 0:
		out = ui.Sentence{ui.Strong("No worker is alive, so nothing runs."), ui.Plain(" Start one with “tollgate work”. ")}
	default:
		out = ui.Sentence{ui.Strong(count(alive, "worker is", "workers are") + " alive."), ui.Plain(" ")}
	}
	out = append(out, ui.Plain(o.waitWords()+" "))
	if o.Count.Unrepaired > 0 {
		return append(out, ui.Strong(o.foundWords()))
	}
	return append(out, ui.Plain(o.foundWords()))
}

func (o operateView) alive() int {
	n := 0
	for _, worker := range o.Workers {
		if worker.Alive() {
			n++
		}
	}
	return n
}

// waitWords say how much waits for a slot, and how long the first of it has.
func (o operateView) waitWords() string {
	waiting, tenants := 0, 0
	var oldest *time.Time
	for _, queue := range o.Queues {
		if queue.Ready == 0 {
			continue
		}
		waiting, tenants = waiting+queue.Ready, tenants+1
		if oldest == nil || queue.Oldest.Before(*oldest) {
			oldest = queue.Oldest
		}
	}
	if waiting == 0 {
		return "Nothing waits for a slot."
	}
	return count(waiting, "branch waits", "branches wait") + " for a slot in " + ui.Plural(int64(tenants), "workspace", "workspaces") +
		", the first for " + ui.Duration(max(o.Now.Sub(*oldest), time.Second)) + "."
}

// foundWords sum up the watchdog.
func (o operateView) foundWords() string {
	switch {
	case o.Count.Found == 0:
		return "The watchdog found nothing in the last 30 days."
	case o.Count.Unrepaired == 0:
		return "The watchdog found " + ui.Plural(int64(o.Count.Found), "thing", "things") + " in the last 30 days and mended all of it."
	}
	return "The watchdog found " + ui.Plural(int64(o.Count.Found), "thing", "things") + " in the last 30 days; " +
		ui.Count(int64(o.Count.Unrepaired)) + " could not be mended."
}

func (o operateView) workers() ui.Table {
	table := ui.Table{ID: "workers", Caption: "Processes that run work and were heard of in the last days, the living first", CaptionUnseen: true,
		Columns: []ui.Column{{Title: "Worker"}, {Title: "State"}, {Title: "Last sign of life"}, {Title: "In use", Number: true}}}
	for _, worker := range o.Workers {
		badge := workerBadge(worker)
		table.Rows = append(table.Rows, ui.TableRow{ID: "worker-" + worker.ID.String(), Cells: []ui.Cell{
			{Text: worker.Name, Small: "since " + inSentence(ui.WhenBrief(worker.StartedAt, o.Now, time.UTC))},
			{Badge: &badge},
			{Text: ui.Ago(worker.BeatAt, o.Now)},
			{Text: ui.Count(int64(worker.Running)) + " of " + ui.Plural(int64(worker.Slots), "slot", "slots")},
		}})
	}
	return table
}

func workerBadge(worker engine.WorkerLine) ui.Badge {
	switch {
	case worker.StoppedAt != nil:
		return ui.Badge{Status: ui.Cancelled, Words: "Stopped"}
	case worker.Silent:
		return ui.Badge{Status: ui.Stuck, Words: "Silent"}
	}
	return ui.Badge{Status: ui.Done, Words: "Alive"}
}

func (o operateView) queues() ui.Table {
	table := ui.Table{ID: "queues", Caption: "Branches of runs by workspace, the longest queue first", CaptionUnseen: true, Brief: true,
		Columns: []ui.Column{{Title: "Workspace"}, {Title: "Wait for a slot", Number: true}, {Title: "Longest wait", Number: true},
			{Title: "Being fetched", Number: true}, {Title: "Working", Number: true}, {Title: "Paused", Number: true}, {Title: "Quota", Number: true}}}
	for _, queue := range o.Queues {
		longest := "–"
		if queue.Oldest != nil {
			longest = ui.Duration(max(o.Now.Sub(*queue.Oldest), time.Second))
		}
		table.Rows = append(table.Rows, ui.TableRow{ID: "queue-" + queue.Tenant.String(), Cells: []ui.Cell{
			{Text: queue.Name}, {Text: ui.Count(int64(queue.Ready))}, {Text: longest},
			{Text: ui.Count(int64(queue.Dispatched))}, {Text: ui.Count(int64(queue.Running))}, {Text: ui.Count(int64(queue.Paused))}, {Text: ui.Count(int64(queue.Quota))},
		}})
	}
	return table
}

func (o operateView) findings() ui.Table {
	table := ui.Table{ID: "findings", Caption: "What the watchdog found, first what it could not mend, then the newest; times in UTC", CaptionUnseen: true, Brief: true,
		Columns: []ui.Column{{Title: "What was found"}, {Title: "Outcome"}, {Title: "Where"}, {Title: "Times", Number: true}, {Title: "Last", Number: true}}}
	for _, found := range o.Findings {
		badge := ui.Badge{Status: ui.Done, Words: "Mended"}
		if !found.Repaired {
			badge = ui.Badge{Status: ui.Failed, Words: "Not mended"}
		}
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{
			{Text: stuckWords(found.Kind).title, Href: "#" + stuckAnchor(found.Kind), Small: found.Error},
			{Badge: &badge},
			{Text: found.Name, Small: runWords(found.Run)},
			{Text: ui.Count(int64(found.Times))},
			{Text: ui.WhenBrief(found.LastAt, o.Now, time.UTC), Small: "by " + found.Worker},
		}})
	}
	return table
}

// runWords name a run by what the log is searched by.
func runWords(run engine.RunID) string {
	if run.IsZero() {
		return ""
	}
	return "run " + run.String()
}
