package web

import (
	"context"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// answerPage asks before a wait is ended by hand.
func (s *Server) answerPage(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	return v.askFirst(v.planAnswer(run, step, nil))
}

// answerWait ends it, or shows the form again with what is wrong in the data.
func (s *Server) answerWait(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	data := v.jsonValue()
	return v.operate(v.planAnswer(run, step, data), func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error) {
		return run, s.Engine.Answer(ctx, tx, run, step, data, seen, v.hand())
	})
}

func (v *visit) planAnswer(run engine.RunID, step engine.StepRunID, typed []byte) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		plan, err := engine.PlanAnswer(ctx, tx, run, step)
		if err != nil {
			return operation{}, err
		}
		page := operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Action: v.path("runs", run.String(), "answer", step.String()), Keep: "Keep waiting",
			Means: []ui.Row{line(ui.Plain("The record says that "), ui.Name(v.me.User.Name), ui.Plain(" ended the wait by hand.")),
				line(ui.Plain("Only this run goes on. Others that wait are not touched."))},
		}
		if plan.TakesData() {
			return page.forEvent(plan, typed), nil
		}
		page.Crumb, page.Title = "Go on now", "Let “"+plan.Node.Step.Name+"” go on now?"
		page.Lead = ui.Words("The time that it waits for is taken to have come.")
		if plan.Wait.Kind == engine.WaitRetry {
			page.Lead = ui.Words("The next try is made now, instead of after the pause.")
		}
		page.Do = ui.Button{Text: "Go on now", Kind: ui.Primary, TestID: "confirm-answer"}
		return page, nil
	}
}

// forEvent is the page for a wait for an event: it asks for the event's data.
func (o operation) forEvent(plan engine.AnswerPlan, typed []byte) operation {
	o.Crumb, o.Title = "Answer by hand", "Answer for the event “"+plan.Wait.EventName+"”?"
	o.Lead = ui.Words("The run goes on as if the event had come with the data below.")
	value := string(typed)
	if typed == nil {
		value = "{}"
	}
	o.Fields = []ui.Field{{Kind: ui.LongField, Name: valueName, Label: "Data of the event", Value: value, Rows: 8,
		Help: "As JSON, just as the sender would have sent it. At most 256 KB."}}
	o.Means = append(o.Means, line(ui.Plain("No event is sent. One that comes later is kept as unused, unless this run waits for it again.")))
	o.Do = ui.Button{Text: "Go on with this", Kind: ui.Primary, TestID: "confirm-answer"}
	return o
}
