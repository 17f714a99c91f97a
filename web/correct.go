package web

import (
	"context"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// othersName is the choice to do other items again that had not ended well.
const othersName = "others"

// correctPage asks before one item of a list is done again with another value.
func (s *Server) correctPage(v *visit) error {
	run, item, err := v.partParams()
	if err != nil {
		return err
	}
	return v.askFirst(v.planCorrect(run, item))
}

// correctItem starts the new run.
func (s *Server) correctItem(v *visit) error {
	run, item, err := v.partParams()
	if err != nil {
		return err
	}
	return v.operate(v.planCorrect(run, item), func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error) {
		request, err := v.correction(ctx, tx, run, item)
		if err != nil {
			return run, err
		}
		started, err := s.Engine.Rerun(ctx, tx, request, v.me.User.ID, seen, v.hand())
		return started.ID, err
	})
}

func (v *visit) partParams() (engine.RunID, engine.StepRunID, error) {
	run, err := idParam[engine.Run](v, "run")
	if err != nil {
		return run, engine.StepRunID{}, err
	}
	item, err := idParam[engine.StepRun](v, "part")
	return run, item, err
}

// correction is what the form asks for.
func (v *visit) correction(ctx context.Context, tx tenants.Tx, run engine.RunID, item engine.StepRunID) (engine.RerunRequest, error) {
	request := engine.RerunRequest{Run: run, From: item.String(), Item: &engine.ItemEdit{Item: item}}
	form := v.Request().PostForm
	if form == nil {
		return request, nil
	}
	request.Suppress, request.Item.Others = form[silentName], form.Has(othersName)
	request.Item.Value = []byte(strings.TrimSpace(strings.ReplaceAll(v.FormValue(valueName), "\r\n", "\n")))
	_, err := expr.DecodeJSON(request.Item.Value)
	return request, err
}

func (v *visit) planCorrect(run engine.RunID, item engine.StepRunID) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		request := engine.RerunRequest{Run: run, From: item.String(), Item: &engine.ItemEdit{Item: item}}
		plan, err := engine.PlanRerun(ctx, tx, request)
		if err != nil {
			return operation{}, err
		}
		value, err := engine.PreviewOf(ctx, tx, run, plan.Items.Item.Input, editedBytes)
		if err != nil {
			return operation{}, err
		}
		name := "Item " + ui.Count(int64(plan.Items.Item.Turn)+1)
		page := operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Crumb: "Correct an item", Title: "Correct " + inSentenceCase(name) + " of “" + plan.From.Step.Name + "”?",
			Lead:   ui.Sentence{ui.Plain("A new run, linked to "), ui.Name(runTitle(plan.Run)), ui.Plain(", does only this item again and joins the list anew. That run stays as it is.")},
			Means:  v.correctMeans(plan),
			Fields: []ui.Field{{Kind: ui.LongField, Name: valueName, Label: name, Value: ui.Pretty(value.Bytes), Rows: 6, Help: "What the item is about, as JSON."}},
			Picks:  append(v.othersPick(plan), v.silentPicks(plan, engine.RerunRequest{Suppress: v.Request().PostForm[silentName]})...),
			Action: v.path("runs", run.String(), "correct", item.String()), Keep: "Leave it as it is",
			Do: ui.Button{Text: "Do this item again", Kind: ui.Primary, Icon: ui.IconRetry, TestID: "confirm-correct"},
		}
		if typed := v.Request().PostForm; typed.Has(valueName) {
			page.Fields[0].Value = typed.Get(valueName)
		}
		return page, nil
	}
}

// correctMeans says what becomes of the other items, and that what follows runs again.
func (v *visit) correctMeans(plan engine.RerunPlan) []ui.Row {
	rows := []ui.Row{}
	if len(plan.Reused) > 0 {
		rows = append(rows, v.rerunMeans(engine.RerunPlan{Reused: plan.Reused})[:1]...)
	}
	if plan.Items.Reused > 0 {
		rows = append(rows, line(ui.Plain(ui.Plural(int64(plan.Items.Reused), "other item that is done is", "other items that are done are")+" taken over with what they gave.")))
	}
	rows = append(rows, line(ui.Plain("The result of “"), ui.Name(plan.From.Step.Name), ui.Plain("” is made anew from all items.")))
	var behind []string
	for _, node := range plan.Again[1:] {
		behind = append(behind, "“"+node.Step.Name+"”")
	}
	if len(behind) > 0 {
		rows = append(rows, line(ui.Plain("What reads it comes after it and "), ui.Strong("runs again"), ui.Plain(": "), ui.Name(fewOf(behind)), ui.Plain(".")))
	}
	return rows
}

// othersPick offers to do the other items again that had not ended well.
func (v *visit) othersPick(plan engine.RerunPlan) []ui.Picks {
	if plan.Items.Lost == 0 {
		return nil
	}
	failed := plan.Run.State == engine.RunFailed
	return []ui.Picks{{Name: othersName, Label: "Other items", Options: []ui.Pick{{
		Value: "yes", On: failed || v.Request().PostForm.Has(othersName), Label: "Try other items that failed again, too",
		Help: ui.Plural(int64(plan.Items.Lost), "item", "items") + " had not ended well. Those that were stopped are always done again.",
	}}}}
}
