package engine

import "encoding/json"

// woken is what the wait came to that set a slice going.
type woken struct {
	step    StepRunID // zero: no wait set it going
	kind    WaitKind
	failure []byte
	output  given
}

// ends tells what came out at a step whose wait has given it its result; not where that
// was not read, or where a call is or may be made again.
func (w *woken) ends(step *StepRun) (outcome, bool) {
	again := w.kind == WaitRetry || w.kind == WaitCap || w.kind == WaitSlot
	switch {
	case w.step != step.ID || again || callsOutside(step.Kind) || !w.output.whole():
		return outcome{}, false
	case w.failure == nil:
		return outcome{kind: done, output: w.output.content}, true
	}
	failure := &Failure{}
	err := json.Unmarshal(w.failure, failure)
	return outcome{kind: failed, failure: failure}, err == nil
}
