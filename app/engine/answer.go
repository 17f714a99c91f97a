package engine

import (
	"context"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// AnswerPlan is what happens when somebody ends a wait by hand: an event is taken to have
// come, with data that she gives; the time that a step waits for is taken to have come.
type AnswerPlan struct {
	Run  Run
	Step StepRun
	Node *pipeline.Node
	Wait Wait
	Mark Mark
}

// TakesData tells whether the answer is data, and not only that the run is to go on.
func (p AnswerPlan) TakesData() bool { return p.Wait.Kind == WaitEvent }

// planAnswer says what answering means. It is pure. Reviews are answered by those whom
// they ask, and money is not there by a word.
func planAnswer(s stoodStep) (AnswerPlan, error) {
	plan := AnswerPlan{Run: s.run, Step: s.step, Node: s.program.Node(s.step.StepID), Mark: markOf(s.run, s.step)}
	if s.wait == nil || plan.Node == nil || !s.run.State.goesOn() || !answerable(s.wait.Kind) {
		return plan, ErrNotWaiting
	}
	plan.Wait = *s.wait
	return plan, nil
}

func answerable(kind WaitKind) bool {
	return kind == WaitEvent || kind == WaitTime || kind == WaitRetry
}

// PlanAnswer says what ending the wait of a step run by hand means. It returns ErrNoRun,
// ErrNoPart or ErrNotWaiting.
func PlanAnswer(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID) (AnswerPlan, error) {
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return AnswerPlan{}, err
	}
	return planAnswer(s)
}

// Answer ends the wait of a step by hand. data is JSON, and counts for an event only. It
// returns ErrMoved where things are not as seen says, the errors of PlanAnswer,
// ErrTooLarge, and *expr.BadJSON.
func (e *Engine) Answer(ctx context.Context, tx tenants.Tx, run RunID, step StepRunID, data []byte, seen Mark, hand Hand) error {
	before, err := hand.doneBefore(ctx, tx, run)
	if err != nil || before {
		return err
	}
	if err := lockRun(ctx, tx, run); err != nil {
		return err
	}
	s, err := stoodStepOf(ctx, tx, run, step)
	if err != nil {
		return err
	}
	plan, err := planAnswer(s)
	switch {
	case err != nil:
		return err
	case seen != "" && seen != plan.Mark:
		return ErrMoved
	}
	w, err := plan.waking(data)
	if err != nil {
		return err
	}
	if err := e.wake(ctx, tx, w); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE step_runs SET note = $3 WHERE tenant_id = $1 AND id = $2`, tx.Tenant, step, expr.Plain(plan.words()+hand.By.Name))
	if err != nil {
		return fmt.Errorf("note who answered a wait: %w", err)
	}
	return hand.note(ctx, tx, run, "wait.answered", map[string]any{"step": plan.Node.ID(), "name": plan.Node.Step.Name, "wait": string(plan.Wait.Kind)})
}

// waking is what the wait comes to.
func (p AnswerPlan) waking(data []byte) (waking, error) {
	w := waking{step: p.Step.ID, state: "done"}
	if !p.TakesData() {
		return w, nil
	}
	if err := checkByHand(data); err != nil {
		return w, err
	}
	w.output = []byte(`{"outcome":"` + pipeline.EventReceived + `","data":` + string(data) + `}`)
	return w, nil
}

// words say how the wait ended, up to by whom.
func (p AnswerPlan) words() string {
	if p.TakesData() {
		return "answered by hand by "
	}
	return "let go on by "
}
