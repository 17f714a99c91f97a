package web

import (
	"context"
	"net/http"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// quotasView is how much the workspace may do at once, and how much it does.
type quotasView struct {
	Use engine.QuotaUse
}

func (s *Server) quotasPage(v *visit) error {
	var view quotasView
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		view.Use, err = engine.QuotaUseOf(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	frame := v.frame("Quotas", inNone)
	frame.Narrow = true
	return v.page(http.StatusOK, frame, quotasBody(view))
}

// lead says whether anything waits because of a quota.
func (q quotasView) lead() ui.Sentence {
	switch {
	case q.Use.OpenRuns >= q.Use.Quotas.OpenRuns:
		return ui.Sentence{ui.Strong("No further run can be started"), ui.Plain(" until some of the open ones have ended.")}
	case q.Use.Slices >= q.Use.Quotas.ParallelSlices && q.Use.Ready > 0:
		return ui.Sentence{ui.Strong(count(q.Use.Ready, "branch waits", "branches wait") + " for a place"), ui.Plain(", since all places of this workspace are taken. They go on by themselves, in order.")}
	}
	return ui.Words("No quota is full. What is beyond a quota waits; nothing is lost.")
}

func (q quotasView) rows() []ui.Row {
	u := q.Use
	return []ui.Row{
		{
			Name: "Work at the same time", End: ui.Count(int64(u.Slices)) + " of " + ui.Count(int64(u.Quotas.ParallelSlices)), EndNote: "branches of runs",
			Reason: ui.Words(q.workWords()), Bar: used("Work at the same time", u.Slices, u.Quotas.ParallelSlices),
		},
		{
			Name: "Open runs", End: ui.Count(int64(min(u.OpenRuns, u.Quotas.OpenRuns))) + " of " + ui.Count(int64(u.Quotas.OpenRuns)), EndNote: "runs",
			Reason: ui.Words(q.runWords()), Bar: used("Open runs", u.OpenRuns, u.Quotas.OpenRuns),
		},
		{
			Name: "Calls to models a minute", End: callsWords(u.Quotas.ModelCalls),
			Reason: ui.Words("How fast models are called, over all keys and models. Steps beyond it wait their turn, use no place meanwhile and go on by themselves."),
		},
	}
}

func (q quotasView) workWords() string {
	words := "How many branches of runs are worked on at once. A run that waits for a person or an event takes no place. When all are taken, further branches wait their turn."
	if q.Use.Ready > 0 {
		words += " Now " + plural(q.Use.Ready, "one waits", ui.Count(int64(q.Use.Ready))+" wait") + "."
	}
	return words
}

func (q quotasView) runWords() string {
	words := "How many runs may be open, those that wait among them. When it is full, no further run starts, and whoever starts one is told."
	if q.Use.Queued > 0 {
		words += " Of the open ones " + plural(q.Use.Queued, "one is queued, since its pipeline takes", sizeWords(q.Use.Queued)+" are queued, since their pipelines take") + " no more at once."
	}
	return words
}

// used is a bar of how much of a quota is taken.
func used(what string, n, of int) *ui.Progress {
	share := 100 * float64(min(n, of)) / float64(max(of, 1))
	status := ui.Running
	if n >= of {
		status = ui.Stuck
	}
	return &ui.Progress{Label: what + ": " + ui.Count(int64(n)) + " of " + ui.Count(int64(of)), Pieces: []ui.Piece{{Status: status, Share: share}}}
}

// callsWords is a limit of calls and tokens a minute.
func callsWords(limit tenants.RateLimit) string {
	var parts []string
	if limit.Requests > 0 {
		parts = append(parts, ui.Plural(limit.Requests, "call", "calls"))
	}
	if limit.Tokens > 0 {
		parts = append(parts, ui.Plural(limit.Tokens, "token", "tokens"))
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return ui.List(parts)
}
