package web

import (
	"context"
	"encoding/json"
	"time"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// replayView is a step's answer beside that of another model.
type replayView struct {
	v         *visit
	Run       engine.Run
	Step      engine.StepRun
	Node      *pipeline.Node
	Replay    engine.Replay
	Old       *ledger.Charge // of the call that gave the step's answer; nil where nothing was booked
	OldOutput []byte
	NewOutput []byte
}

func (r *replayView) read(ctx context.Context, tx tenants.Tx, run engine.RunID, id engine.ReplayID) error {
	var err error
	if r.Replay, err = engine.ReplayByID(ctx, tx, run, id); err != nil {
		return err
	}
	plan, err := r.v.s.Engine.PlanReplay(ctx, tx, run, r.Replay.Step, nil)
	if err != nil {
		return err
	}
	r.Run, r.Step, r.Node = plan.Run, plan.Step, plan.Node
	charges, err := ledger.ChargesOfStep(ctx, tx, ledger.StepRunID(r.Step.ID))
	if err != nil {
		return err
	}
	for _, charge := range charges {
		if charge.Kind != ledger.Test {
			r.Old = &charge
		}
	}
	if r.OldOutput, err = outputOf(ctx, tx, run, r.Step.Output); err != nil {
		return err
	}
	r.NewOutput, err = outputOf(ctx, tx, run, r.Replay.Output)
	return err
}

// outputOf is the beginning of a value, as much as is compared; nil where there is none.
func outputOf(ctx context.Context, tx tenants.Tx, run engine.RunID, digest engine.Digest) ([]byte, error) {
	if digest.IsZero() {
		return nil, nil
	}
	preview, err := engine.PreviewOf(ctx, tx, run, digest, inputBytes)
	return preview.Bytes, err
}

func (r replayView) title() string { return "“" + r.Node.Step.Name + "” by another model" }

func (r replayView) crumbs() []ui.Link {
	return append(runCrumbs(r.v, r.Run), ui.Link{Text: r.Node.Step.Name, Href: r.v.path("runs", r.Run.ID.String(), "steps", r.Node.ID())}, ui.Link{Text: "Another model"})
}

func (r replayView) lead() ui.Sentence {
	return ui.Sentence{ui.Name(modelName(r.Replay.Model)), ui.Plain(" was asked what this step was asked. The run stays as it is.")}
}

// oldModel is who gave the step's answer.
func (r replayView) oldModel() string {
	if r.Step.AnsweredByPeople() {
		return "a person"
	}
	return modelName(passage{Node: r.Node, Step: &r.Step}.asks())
}

// notice tells that the answer is not here yet, or never comes.
func (r replayView) notice() *ui.Notice {
	switch r.Replay.State {
	case engine.ReplayQueued:
		return &ui.Notice{Status: ui.Waiting, Text: ui.Words("It is asked as soon as a worker is free. Load this page again in a moment.")}
	case engine.ReplayRunning:
		return &ui.Notice{Status: ui.Running, Text: ui.Words("It is being asked. Load this page again in a moment.")}
	case engine.ReplayFailed:
		words := "It gave nothing."
		if r.Replay.Failure != nil {
			words = r.Replay.Failure.Message
		}
		return &ui.Notice{Status: ui.Failed, Text: ui.Sentence{ui.Name(words)}}
	}
	return nil
}

// figures compares tokens, cost and time.
func (r replayView) figures() ui.Table {
	table := ui.Table{ID: "figures", Caption: "Tokens, cost and time", CaptionUnseen: true, Columns: []ui.Column{
		{Title: "What"}, {Title: "This run", Number: true}, {Title: "The other model", Number: true}}}
	row := func(name string, of func(*ledger.Charge) string) {
		cells := []ui.Cell{{Text: name}}
		for _, charge := range []*ledger.Charge{r.Old, r.Replay.Charge} {
			text := "not known"
			if charge != nil {
				text = of(charge)
			}
			cells = append(cells, ui.Cell{Text: text})
		}
		table.Rows = append(table.Rows, ui.TableRow{Cells: cells})
	}
	row("Read", func(c *ledger.Charge) string {
		return ui.Count(c.Tokens.Input+c.Tokens.CacheRead+c.Tokens.CacheWrite+c.Tokens.CacheWriteLong) + " tokens"
	})
	row("Written", func(c *ledger.Charge) string { return ui.Count(c.Tokens.Output+c.Tokens.Reasoning) + " tokens" })
	if r.v.maySeeMoney() {
		row("Cost", func(c *ledger.Charge) string { return c.Cost.Exact() + costNote(*c) })
	}
	row("Answered in", func(c *ledger.Charge) string {
		if c.Latency < time.Millisecond {
			return "under 1 ms"
		}
		return ui.Duration(c.Latency)
	})
	return table
}

// answers compares the answers field by field, with what differs marked.
func (r replayView) answers() ui.Table {
	table := ui.Table{ID: "answers", Caption: "Answers", CaptionUnseen: true, Columns: []ui.Column{
		{Title: "Field"}, {Title: "This run, " + r.oldModel()}, {Title: modelName(r.Replay.Model)}}}
	before, after := partsOf(r.OldOutput), partsOf(r.NewOutput)
	for _, field := range pipeline.Outputs(*r.Node.Step) {
		old, new := answerPart(before[field.Name]), answerPart(after[field.Name])
		row := ui.TableRow{Cells: []ui.Cell{{Text: field.Title()}, {Part: changedText{{Text: old}}, Small: r.oldModel()}, {Part: changedText(wordChanges(old, new)), Small: modelName(r.Replay.Model)}}}
		if old == new {
			row.Cells[2] = ui.Cell{Part: changedText{{Text: new}}, Small: modelName(r.Replay.Model) + ", the same"}
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func partsOf(output []byte) map[string]json.RawMessage {
	var parts map[string]json.RawMessage
	if json.Unmarshal(output, &parts) != nil {
		return nil
	}
	return parts
}

// answerPart is a part of an answer in words; nothing where it is empty.
func answerPart(raw json.RawMessage) string {
	decoded, err := expr.DecodeJSON(raw)
	if err != nil || decoded == nil {
		return "–"
	}
	words, err := expr.Words(decoded)
	if err != nil {
		return string(raw)
	}
	return words
}

// fundsWords label pretend dollars.
func fundsWords(funds ledger.Funds) string {
	if funds == ledger.Pretend {
		return " in pretend dollars"
	}
	return ""
}
