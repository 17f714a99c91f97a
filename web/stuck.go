package web

import (
	"slices"
	"time"

	"tollgate/app/engine"
	"tollgate/web/ui"
)

// stuckFor is how long ago the watchdog may last have seen a run stand still for it to count
// as stuck now: it looks every few seconds, or once a minute where very much waits.
const stuckFor = 3 * time.Minute

// stuck is what holds the run up now; nil where nothing does.
func (r *runView) stuck() *engine.Finding {
	if r.View.Run.State.Final() {
		return nil
	}
	i := slices.IndexFunc(r.Findings, func(f engine.Finding) bool { return !f.Repaired && r.Now.Sub(f.LastAt) < stuckFor })
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

// stuckCauses word why nothing carries a run on, by what the watchdog found.
var stuckCauses = map[engine.StuckKind]string{
	engine.StuckJobGone: "no worker has it, although it was given to one", engine.StuckUndriven: "a worker holds it and does not go on with it",
	engine.StuckNoSlice: "a step counts as running and no worker has it", engine.StuckNoWait: "a step waits for nothing that could come",
	engine.StuckNoStep: "no step of it is open", engine.StuckNoWaker: "a step waits for something that will not come",
	engine.StuckLostChild: "the run that it waits for is over or gone", engine.StuckSlotLeaked: "it counts as under way and nobody has it",
	engine.StuckJobOrphaned: "the work that was begun for it belongs to an earlier state", engine.StuckUnserved: "it is ready, there is room, and it is passed over",
	engine.StuckLeftPaused: "a branch stayed paused when it was resumed", engine.StuckLostJoin: "its branches have ended and nobody goes on behind them",
	engine.StuckLostPart: "a part of it is open and nothing in it is", engine.StuckLostItems: "items of a list wait and nobody takes them",
}

// stuckNotice says what holds the run up, and what one can do.
func (r *runView) stuckNotice() ui.Notice {
	found := r.stuck()
	cause := stuckCauses[found.Kind]
	if cause == "" {
		cause = "nothing carries it on"
	}
	out := ui.Sentence{ui.Strong("Stuck" + clock{r.Now, r.v.zone()}.since(found.FirstAt) + ":"), ui.Plain(" " + cause + ". The watchdog tries to set it going again every few seconds; what is done is kept. ")}
	if r.mayChange() {
		out = append(out, ui.Plain("If this stays for more than a minute, pause the run and resume it, or cancel it and run it again. "))
	}
	return ui.Notice{Status: ui.Stuck, Text: append(out, ui.Plain("Tell whoever runs this installation: it is a defect of ours."))}
}
