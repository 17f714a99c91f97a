package web

import (
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// runLink leads to a run by its pipeline and number.
func (r *runView) runLink(run engine.Run) ui.Span {
	return ui.LinkTo("#"+strconv.FormatInt(run.Number, 10)+" of “"+run.PipelineName+"”", r.v.path("runs", run.ID.String()))
}

// aboveFact leads to the step that started this run.
func (r *runView) aboveFact() ui.Sentence {
	above := r.Relatives.Above
	link := r.runLink(*above)
	link.Href = r.v.path("runs", above.ID.String(), "steps", r.View.Run.ParentStep.String())
	return ui.Sentence{link}
}

// childSentence says which run a step has started, and how that stands.
func (r *runView) childSentence(p passage) ui.Sentence {
	if p.Step == nil || p.Node.Kind() != pipeline.KindChild {
		return nil
	}
	child, ok := r.Relatives.Below[p.Step.ID]
	if !ok {
		return nil
	}
	return ui.Sentence{ui.Plain("Run "), r.runLink(child), ui.Plain(" " + childWords[child.State] + ".")}
}

// childWords say how a run stands that a step has started.
var childWords = map[engine.RunState]string{
	engine.RunQueued: "is queued", engine.RunRunning: "is under way", engine.RunPausing: "is being paused", engine.RunPaused: "is paused",
	engine.RunCancelling: "is being cancelled", engine.RunCompleted: "is done", engine.RunFailed: "failed", engine.RunCancelled: "was cancelled",
}

// behind puts one sentence behind another; either may be empty.
func behind(first, second ui.Sentence) ui.Sentence {
	if len(first) == 0 || len(second) == 0 {
		return append(first, second...)
	}
	return append(append(first, ui.Plain(" ")), second...)
}

// tellChild says which pipeline a step runs, as far as its name is known here, and what
// becomes of the result.
func tellChild(with *pipeline.Child) string {
	if with.Wait {
		return "Runs another pipeline and waits for its result; if that run fails, this step fails."
	}
	return "Runs another pipeline and goes on at once."
}

func tellEmit(program *pipeline.Program, with *pipeline.Emit) string {
	said := "Sends the event “" + with.Name + "”"
	if with.Key != "" {
		said += " with the key " + readable(program, with.Key)
	}
	return said + " to the runs of this workspace that wait for it."
}
