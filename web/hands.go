package web

import (
	"context"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// readHands reads what people did to the run.
func (r *runView) readHands(ctx context.Context, tx tenants.Tx) error {
	entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "run", ID: r.View.Run.ID}, tenants.AuditID{})
	for _, entry := range entries {
		switch {
		case entry.Action == runPaused || entry.Action == runResumed:
			r.Pauses = append(r.Pauses, entry)
		case handVerbs[entry.Action] != "":
			r.Hands = append(r.Hands, entry)
		}
	}
	return err
}

// handVerbs say what somebody did; where it was done to a step, its name follows.
var handVerbs = map[string]string{
	"run.retried":   " had the failed step tried again",
	"step.skipped":  " skipped the step ",
	"wait.answered": " ended by hand the wait of ",
	"run.rerun":     " ran it again from ",
	"step.replayed": " put to another model the step ",
}

// handWords tell it as a line of the run's story.
func (v *visit) handWords(entry tenants.Entry) ui.Sentence {
	said := ui.Sentence{ui.Name(entry.Actor.Name), ui.Plain(handVerbs[entry.Action])}
	if name, ok := entry.Detail["name"].(string); ok {
		said = append(said, ui.Plain("“"), ui.Name(name), ui.Plain("”"))
	}
	if id, ok := entry.Detail["run"].(string); ok {
		said = append(said, ui.Plain(", as "), ui.LinkTo("another run", v.path("runs", id)))
	}
	return said
}

// handActions are what she can do about the step by hand.
func (p *panelView) handActions() ui.Actions {
	step, run := p.Passage.Step, p.r.View.Run
	if step == nil || engine.IsPart(step.Kind) || !p.r.v.me.Role.May(tenants.StartRuns) {
		return nil
	}
	actions := ui.Actions{ui.Button{Text: "Run again from here", Href: p.r.path("rerun", p.node().ID()), TestID: "rerun-step"}}
	if step.Kind == pipeline.KindAI && !step.State.Open() && !step.Input.IsZero() {
		actions = append(actions, ui.Button{Text: "Ask another model", Href: p.r.path("replay", step.ID.String()), TestID: "replay-step"})
	}
	if wait := p.Passage.Wait; wait != nil && !run.State.Final() {
		if words := answerWords[wait.Kind]; words != "" {
			actions = append(actions, ui.Button{Text: words, Href: p.r.path("answer", step.ID.String()), TestID: "answer-wait"})
		}
		return append(actions, p.skipButton())
	}
	if step.State == engine.StepFailed && run.State == engine.RunFailed {
		return append(actions, p.skipButton())
	}
	return actions
}

func (p *panelView) skipButton() ui.Button {
	return ui.Button{Text: "Skip with a value", Href: p.r.path("skip", p.Passage.Step.ID.String()), TestID: "skip-step"}
}

// answerWords offer to end a wait by hand.
var answerWords = map[engine.WaitKind]string{
	engine.WaitEvent: "Answer by hand", engine.WaitTime: "Go on now", engine.WaitRetry: "Try now",
}

// itemActions are what she can do about an item.
func (r *runView) itemActions() ui.Actions {
	if r.View.Part.Kind != engine.KindItem || r.View.Part.State.Open() || !r.v.me.Role.May(tenants.StartRuns) {
		return nil
	}
	return ui.Actions{ui.Button{Text: "Correct this item", Href: r.path("correct", r.View.Part.ID.String()), TestID: "correct-item"}}
}
