package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// The names of a rerun's fields; that of an output ends with the id of its step.
const (
	inputName   = "run-input"
	outputName  = "output-"
	silentName  = "silent"
	versionName = "version"
	newestValue = "newest"
)

// mostEdited bounds what can be changed on one page: a value in bytes, and how many.
const (
	editedBytes = 16 << 10
	mostEdited  = 10
)

// rerunPage asks before a run is done again from a step on.
func (s *Server) rerunPage(v *visit) error {
	request, err := v.rerunRequest()
	if err != nil {
		return err
	}
	return v.askFirst(v.planRerun(request))
}

// rerunRun starts the new run.
func (s *Server) rerunRun(v *visit) error {
	request, err := v.rerunRequest()
	if err != nil {
		return err
	}
	return v.operate(v.planRerun(request), v.rerun(request))
}

// rerun does it, with what was changed in the form.
func (v *visit) rerun(request engine.RerunRequest) doing {
	return func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (engine.RunID, error) {
		plan, err := engine.PlanRerun(ctx, tx, request)
		if err != nil {
			return engine.RunID{}, err
		}
		values, err := v.editable(ctx, tx, plan)
		if err != nil {
			return engine.RunID{}, err
		}
		if err := v.takeEdits(values, &request); err != nil {
			return engine.RunID{}, err
		}
		run, err := v.s.Engine.Rerun(ctx, tx, request, v.me.User.ID, seen, v.hand())
		return run.ID, err
	}
}

// rerunRequest reads what the address and the form choose besides values.
func (v *visit) rerunRequest() (engine.RerunRequest, error) {
	run, err := idParam[engine.Run](v, "run")
	request := engine.RerunRequest{Run: run, From: v.Param("step"), Newest: v.FormValue(versionName) == newestValue}
	request.Fresh = v.Request().Method == http.MethodGet // who does something again mostly wants another answer
	if form := v.Request().PostForm; form != nil {
		request.Suppress, request.Fresh = form[silentName], slices.Contains(form[askAgainName], "true")
	}
	return request, err
}

// editable is a value that can be changed for a rerun.
type editable struct {
	name, label, help string
	step              string // whose result it is; empty for the input
	shown             []byte
}

// editable reads the values that are short enough to be changed on a page.
func (v *visit) editable(ctx context.Context, tx tenants.Tx, plan engine.RerunPlan) ([]editable, error) {
	all := []editable{{name: inputName, label: "Input of the run", help: "As JSON. Steps that are taken over keep what they gave, whatever the input says."}}
	digests := []engine.Digest{plan.Run.Input}
	for _, reused := range plan.Reused {
		if reused.Step.Output.IsZero() || len(all) > mostEdited {
			continue
		}
		all = append(all, editable{name: outputName + reused.Node.ID(), label: "What “" + reused.Node.Step.Name + "” gave", step: reused.Node.ID()})
		digests = append(digests, reused.Step.Output)
	}
	var out []editable
	for i, one := range all {
		preview, err := engine.PreviewOf(ctx, tx, plan.Run.ID, digests[i], editedBytes)
		if err != nil {
			return nil, err
		}
		if preview.Whole() {
			one.shown = preview.Bytes
			out = append(out, one)
		}
	}
	return out, nil
}

// badField tells what is wrong in which field of a form.
type badField struct{ field, fault string }

func (e *badField) Error() string { return e.field + ": " + e.fault }

// takeEdits reads what was changed. What says the same as before counts as unchanged.
func (v *visit) takeEdits(values []editable, request *engine.RerunRequest) error {
	request.Outputs = map[string][]byte{}
	for _, one := range values {
		if !v.Request().PostForm.Has(one.name) {
			continue
		}
		typed := []byte(strings.TrimSpace(strings.ReplaceAll(v.FormValue(one.name), "\r\n", "\n")))
		after, err := expr.DecodeJSON(typed)
		if fault := valueFault(typed, err); fault != "" {
			return &badField{one.name, fault}
		}
		before, err := expr.DecodeJSON(one.shown)
		if err != nil {
			return err
		}
		if same, err := expr.Equal(before, after); err == nil && same {
			continue
		}
		if _, record := after.(map[string]any); !record && one.step == "" {
			return &badField{one.name, "The input is a record: it begins with { and ends with }."}
		}
		if one.step == "" {
			request.Input = typed
		} else {
			request.Outputs[one.step] = typed
		}
	}
	return nil
}

func (v *visit) planRerun(request engine.RerunRequest) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		plan, err := engine.PlanRerun(ctx, tx, request)
		if err != nil {
			return operation{}, err
		}
		values, err := v.editable(ctx, tx, plan)
		if err != nil {
			return operation{}, err
		}
		page := operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Crumb: "Run again", Title: "Run again from “" + plan.From.Step.Name + "”?",
			Lead:   ui.Sentence{ui.Plain("A new run, linked to "), ui.Name(runTitle(plan.Run)), ui.Plain(". That one stays as it is.")},
			Means:  append(v.rerunMeans(plan), v.rerunMoney(plan)...),
			Picks:  v.silentPicks(plan, request),
			Action: v.path("runs", plan.Run.ID.String(), "rerun", plan.From.ID()), Keep: "Leave it at the original",
			Do: ui.Button{Text: "Run again from here", Kind: ui.Primary, Icon: ui.IconRetry, TestID: "confirm-rerun"},
		}
		if request.Newest {
			page.More = []ui.Hidden{{Name: versionName, Value: newestValue}}
		}
		page.Means = append(page.Means, v.versionRow(plan, request))
		page.addEditable(values)
		if slices.ContainsFunc(plan.Again, reuses) {
			page.Fields = append(page.Fields, askAgainField(request.Fresh))
		}
		return page, nil
	}
}

// reuses tells whether a step, or one inside it, takes earlier answers.
func reuses(node *pipeline.Node) bool {
	if node.Reuse > 0 {
		return true
	}
	return slices.ContainsFunc(node.Lists, func(list pipeline.ChildList) bool { return slices.ContainsFunc(list.Nodes, reuses) })
}

// addEditable adds a field for each value that can be changed, the input first.
func (o *operation) addEditable(values []editable) {
	for _, one := range values {
		field := ui.Field{Kind: ui.LongField, Name: one.name, Label: one.label, Help: one.help, Value: ui.Pretty(one.shown), Rows: 6}
		if o.v.Request().PostForm.Has(one.name) {
			field.Value = o.v.FormValue(one.name)
		}
		if one.step == "" {
			o.Fields = append(o.Fields, field)
		} else {
			o.Folded = append(o.Folded, field)
		}
	}
}
