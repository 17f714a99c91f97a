package web

import (
	"context"
	"encoding/json"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// stepParams are the run and the step run of an address.
func (v *visit) stepParams() (engine.RunID, engine.StepRunID, error) {
	run, err := idParam[engine.Run](v, "run")
	if err != nil {
		return run, engine.StepRunID{}, err
	}
	step, err := idParam[engine.StepRun](v, "step")
	return run, step, err
}

// skipPage asks before a step is skipped, and for the value that counts instead.
func (s *Server) skipPage(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	return v.askFirst(v.planSkip(run, step, nil))
}

// skipStep skips it, or shows the form again with what is wrong in the value.
func (s *Server) skipStep(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	value := v.jsonValue()
	return v.operate(v.planSkip(run, step, value), func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error) {
		return run, s.Engine.Skip(ctx, tx, run, step, value, seen, v.hand())
	})
}

func (v *visit) planSkip(run engine.RunID, step engine.StepRunID, typed []byte) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		plan, err := engine.PlanSkip(ctx, tx, run, step)
		if err != nil {
			return operation{}, err
		}
		value := string(typed)
		if typed == nil {
			value = exampleOf(plan.Node)
		}
		return operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Crumb: "Skip a step", Title: "Skip “" + plan.Node.Step.Name + "”?",
			Lead:  ui.Words("The run goes on behind it, with the value below in place of what it would have given."),
			Means: v.skipMeans(plan),
			Fields: []ui.Field{{Kind: ui.LongField, Name: valueName, Label: "Value to use instead", Value: value, Rows: 8,
				Help: "As JSON, with the fields that later steps read. What is left out is empty for them."}},
			Action: v.path("runs", run.String(), "skip", step.String()), Keep: "Do not skip it",
			Do: ui.Button{Text: "Skip the step", Kind: ui.Primary, TestID: "confirm-skip"},
		}, nil
	}
}

// skipMeans says what ends, what reads the value, and what else goes on.
func (v *visit) skipMeans(plan engine.SkipPlan) []ui.Row {
	rows := []ui.Row{line(ui.Plain(skippedNow(plan)))}
	switch reads := readWords(plan.Reads); {
	case reads != "":
		rows = append(rows, line(ui.Plain("Later steps read "), ui.Name(reads), ui.Plain(" of it.")))
	default:
		rows = append(rows, line(ui.Plain("No later step reads what it gives, so the value may be empty.")))
	}
	return append(rows, v.againRows(plan.Again)...)
}

// skippedNow says what becomes of what the step is at.
func skippedNow(plan engine.SkipPlan) string {
	switch {
	case plan.Wait == nil:
		return "It failed, and is not tried again. The run goes on as the same run."
	case plan.Wait.Kind == engine.WaitReview:
		return "Nobody is asked any more: the links that were sent say that no decision is needed."
	case plan.Wait.Kind == engine.WaitEvent:
		return "It stops waiting for the event. One that comes later is kept as unused."
	case plan.Wait.Kind == engine.WaitChild:
		return "It stops waiting for the run that it started. That run goes on by itself."
	case plan.Wait.Kind == engine.WaitTime:
		return "It stops waiting for its time."
	}
	return "It stops waiting, and is not tried again."
}

// readWords lists the fields that are read; of a whole value it says so.
func readWords(reads []string) string {
	var names []string
	for _, read := range reads {
		if read == "" {
			return "all"
		}
		names = append(names, "“"+read+"”")
	}
	if len(names) == 0 {
		return ""
	}
	return ui.List(names)
}

// exampleOf is a value of the form that the step gives, with nothing in it.
func exampleOf(node *pipeline.Node) string {
	var text strings.Builder
	text.WriteString("{")
	for i, field := range pipeline.Outputs(*node.Step) {
		if i > 0 {
			text.WriteString(",")
		}
		name, err := json.Marshal(field.Name)
		if err != nil { // a text cannot fail
			continue
		}
		text.WriteString("\n  " + string(name) + ": " + emptyOf[field.Type])
		if emptyOf[field.Type] == "" {
			text.WriteString("null")
		}
	}
	if text.Len() > 1 {
		text.WriteString("\n")
	}
	return text.String() + "}"
}

// emptyOf is a value of each type to begin from.
var emptyOf = map[pipeline.FieldType]string{
	pipeline.TypeText: `""`, pipeline.TypeNumber: "0", pipeline.TypeList: "[]", pipeline.TypeRecord: "{}", pipeline.TypeYesNo: "false",
}
