package web

import (
	"context"
	"fmt"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// retryPage asks before the failed step of a run is tried again.
func (s *Server) retryPage(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	return v.askFirst(v.planRetry(id))
}

// retryRun tries it again.
func (s *Server) retryRun(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	return v.operate(v.planRetry(id), func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error) {
		return id, s.Engine.Retry(ctx, tx, id, seen, v.hand())
	})
}

func (v *visit) planRetry(id engine.RunID) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		plan, err := engine.PlanRetry(ctx, tx, id)
		return operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Crumb: "Try again", Title: "Try the failed step again?",
			Lead:   ui.Sentence{ui.Strong(plan.Run.Name), ui.Plain(" goes on where it stopped, as the same run.")},
			Means:  v.retryMeans(plan),
			Action: v.path("runs", id.String(), "retry"), Keep: "Leave it failed",
			Do: ui.Button{Text: "Try again", Kind: ui.Primary, Icon: ui.IconRetry, TestID: "confirm-retry"},
		}, err
	}
}

// retryMeans says what begins anew, what goes on, what stays, and what it may cost.
func (v *visit) retryMeans(plan engine.RetryPlan) []ui.Row {
	rows := v.againRows(plan.Again)
	if len(plan.Again) == 0 {
		rows = append(rows, line(ui.Plain("The run goes on behind the last step that is done.")))
	}
	if plan.Items > 0 {
		rows = append(rows, line(ui.Plain(ui.Plural(int64(plan.Items), "item that nobody had begun goes", "items that nobody had begun go")+" on as well.")))
	}
	rows = append(rows, line(ui.Plain("Version v"+strconv.Itoa(plan.Run.Version)+" and the input stay the same.")))
	if plan.Kept > 0 {
		rows = append(rows, line(ui.Plain(ui.Plural(int64(plan.Kept), "step that is done is kept and not", "steps that are done are kept and not")+" done again.")))
	}
	return rows
}

// againRows say which steps begin anew, and what their tries have cost so far.
func (v *visit) againRows(again []engine.Redone) []ui.Row {
	var rows []ui.Row
	for _, redone := range again {
		words := " begins anew."
		if redone.Times > 1 {
			words = fmt.Sprintf(" begins anew for %s: %s of them failed, the others were stopped with those.",
				ui.Plural(int64(redone.Times), "item", "items"), ui.Count(int64(redone.Failed)))
		} else if redone.Failed == 0 {
			words = " was stopped when the other failed, and begins anew."
		}
		row := line(ui.Strong(redone.Node.Step.Name), ui.Plain(words+againCare(redone.Node.Kind())))
		if redone.Node.Kind() == pipeline.KindAI && v.maySeeMoney() {
			row.Reason = append(row.Reason, ui.Plain(" Its tries have cost "+ui.Dollars(redone.SpentMicros)+" so far; trying again costs about as much as one of them."))
		}
		rows = append(rows, row)
	}
	return rows
}

// againCare says what to mind where a step reaches people or other systems.
func againCare(kind pipeline.Kind) string {
	switch kind {
	case pipeline.KindReview:
		return " Those whom it asked are asked again, with new links."
	case pipeline.KindEmail:
		return " It keeps its key, so a mail that went out in spite of the failure does not go twice."
	case pipeline.KindHTTP:
		return " The request is sent again under the same key. If it may have arrived, look in the other system first."
	}
	return ""
}
