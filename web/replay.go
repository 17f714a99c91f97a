package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// replayModel is the name of the field that chooses the other model.
const replayModel = "model"

// replayPage asks which other model a finished step is to be put to.
func (s *Server) replayPage(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	return v.askFirst(v.planReplay(run, step))
}

// replayStep puts it to that model, and leads to where both answers will stand.
func (s *Server) replayStep(v *visit) error {
	run, step, err := v.stepParams()
	if err != nil {
		return err
	}
	model := v.FormValue(replayModel)
	return v.operateTo(v.planReplay(run, step), func(ctx context.Context, tx tenants.Tx, seen engine.Mark) (string, error) {
		models, err := s.callable(ctx, tx)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(models, func(m Model) bool { return m.ID == model }) {
			return "", &badField{replayModel, "Choose one of the models below."}
		}
		id, err := s.Engine.StartReplay(ctx, tx, run, step, model, seen, v.hand())
		if errors.Is(err, ledger.ErrUnknownPrice) {
			return "", &badField{replayModel, "Choose one of the models below."}
		}
		return v.path("runs", run.String(), "replays", id.String()), err
	})
}

func (v *visit) planReplay(run engine.RunID, step engine.StepRunID) planning {
	return func(ctx context.Context, tx tenants.Tx) (operation, error) {
		models, err := v.s.callable(ctx, tx)
		if err != nil {
			return operation{}, err
		}
		var ids []string
		for _, model := range models {
			ids = append(ids, model.ID)
		}
		plan, err := v.s.Engine.PlanReplay(ctx, tx, run, step, ids)
		if err != nil {
			return operation{}, err
		}
		earlier, err := engine.ReplaysOf(ctx, tx, step)
		if err != nil {
			return operation{}, err
		}
		page := operation{
			v: v, Run: plan.Run, Mark: plan.Mark, Crumb: "Ask another model", Title: "Put “" + plan.Node.Step.Name + "” to another model?",
			Lead:   ui.Words("It is asked exactly what this step was asked. Both answers then stand side by side."),
			Means:  v.replayMeans(run, earlier),
			Fields: []ui.Field{v.replayChoices(plan, models)},
			Action: v.path("runs", run.String(), "replay", step.String()), Keep: "Back to the run",
			Do: ui.Button{Text: "Ask it", Kind: ui.Primary, TestID: "confirm-replay"},
		}
		return page, nil
	}
}

// replayMeans says what it leaves alone and where its money counts, and leads to what was
// asked before.
func (v *visit) replayMeans(run engine.RunID, earlier []engine.Replay) []ui.Row {
	rows := []ui.Row{
		line(ui.Plain("Nothing in the run changes: its result stays what it is.")),
		line(ui.Plain("What it costs counts as a test, under the test budget and under all other AI spend caps.")),
	}
	for _, replay := range earlier {
		rows = append(rows, line(ui.LinkTo(modelName(replay.Model), v.path("runs", run.String(), "replays", replay.ID.String())),
			ui.Plain(" was asked by "), ui.Name(replay.StartedBy), ui.Plain(", "+ui.When(replay.CreatedAt, v.now, v.zone())+".")))
	}
	return rows
}

// replayChoices are the models whose price is known, with the most that each may cost.
func (v *visit) replayChoices(plan engine.ReplayPlan, models []Model) ui.Field {
	field := ui.Field{Kind: ui.ChoiceField, Name: replayModel, Label: "Model"}
	for i, choice := range plan.Choices {
		if !choice.Known {
			continue
		}
		option := ui.Option{Value: choice.Model, Label: models[i].Name}
		if v.maySeeMoney() {
			option.Help = "Costs at most " + choice.Quote.Amount.Exact() + fundsWords(choice.Quote.Price.Funds) + "."
		}
		field.Options = append(field.Options, option)
	}
	return field
}

// replayedPage shows both answers side by side.
func (s *Server) replayedPage(v *visit) error {
	run, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	id, err := idParam[engine.Replay](v, "replay")
	if err != nil {
		return err
	}
	page := replayView{v: v}
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error { return page.read(ctx, tx, run, id) })
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, v.frame(page.title(), inRuns), replayBody(page))
}
