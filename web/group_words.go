package web

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// sizeOrder is how the parts of a group are counted out, and in which words.
var sizeOrder = []struct {
	standing  engine.StandingState
	one, many string
}{
	{engine.StandingCompleted, "done", "done"}, {engine.StandingFailed, "failed", "failed"},
	{engine.StandingCapped, "stopped by the cap", "stopped by the cap"},
	{engine.StandingPerson, "waits for a person", "wait for a person"}, {engine.StandingRetrying, "retries", "retry"},
	{engine.StandingWaiting, "waits", "wait"}, {engine.StandingRunning, "running", "running"},
	{engine.StandingQueued, "not begun", "not begun"}, {engine.StandingCancelled, "cancelled", "cancelled"},
}

// countedWords counts the parts of a group out: "36 done · 1 failed · 3 wait for a person".
func countedWords(size engine.GroupSize) string {
	words := ""
	for _, one := range sizeOrder {
		n := size.By[one.standing]
		if n == 0 {
			continue
		}
		if words != "" {
			words += " · "
		}
		words += ui.Count(int64(n)) + " " + plural(n, one.one, one.many)
	}
	return words
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// sizeStatus is how an open group of so many parts stands: at work if one works, else by
// the most urgent thing that one waits for.
func sizeStatus(size engine.GroupSize) ui.Status {
	for _, standing := range []engine.StandingState{
		engine.StandingRunning, engine.StandingCapped, engine.StandingPerson, engine.StandingRetrying, engine.StandingWaiting,
	} {
		if size.By[standing] > 0 {
			return statusOf(standing)
		}
	}
	return ui.Running // between two of them
}

// strip shows the parts of a group in their order.
func strip(size engine.GroupSize) *ui.Strip {
	if size.Parts == 0 {
		return nil
	}
	out := &ui.Strip{Words: countedWords(size)}
	for _, cell := range size.Strip {
		out.Cells = append(out.Cells, statusOf(cell))
	}
	return out
}

// listReason tells about a list under its row: the counts, why some failed, and the way
// to its items.
func listReason(size engine.GroupSize, address func(standing string) string) ui.Sentence {
	if size.Parts == 0 {
		return ui.Words("The list is empty.")
	}
	out := ui.Sentence{ui.Strong(countedWords(size)), ui.Plain(". ")}
	if failed := size.By[engine.StandingFailed]; failed > 0 {
		out = append(out, ui.LinkTo("Show "+ui.Count(int64(failed))+" failed", address(string(engine.StandingFailed))), ui.Plain(" · "))
	}
	out = append(out, ui.LinkTo("Show all "+ui.Count(int64(size.Parts)), address("all")))
	return append(out, causeWords(size.Causes)...)
}

// causeWords group failures by what was wrong.
func causeWords(causes []engine.Cause) ui.Sentence {
	var out ui.Sentence
	for _, cause := range causes {
		out = append(out, ui.Plain(fmt.Sprintf(" · %s × ", ui.Count(int64(cause.Parts)))), ui.Name(firstOf(cause.Message, 80)))
	}
	return out
}

// firstOf cuts a text that would fill a line.
func firstOf(text string, most int) string {
	short, cut := ui.Cut(text, most)
	if cut {
		return short + "…"
	}
	return short
}

// endWords say why a loop ended.
func endWords(reason string) string {
	return map[string]string{
		pipeline.EndUntil: "its condition held", pipeline.EndRounds: "it reached its limit of rounds",
		pipeline.EndCost: "it reached its limit of money", pipeline.EndTime: "it reached its limit of time",
	}[reason]
}

// loopReason tells about a loop under its row: the round it is at, the best so far, and
// how near its limits are; or how it ended.
func (r *runView) loopReason(p passage) ui.Sentence {
	loop, rounds := p.Node.Repeat(), r.roundsOf(p)
	if loop == nil {
		return nil
	}
	if !p.Step.State.Open() {
		return r.loopEnd(p, rounds)
	}
	out := ui.Sentence{ui.Strong(fmt.Sprintf("Round %d", max(rounds, 1))), ui.Plain(fmt.Sprintf(" of at most %d. ", loop.MaxRounds))}
	spent := ui.Duration(r.Now.Sub(p.Step.CreatedAt)) + " of at most " + ui.Duration(loop.MaxTime)
	if r.v.maySeeMoney() {
		spent = ui.Dollars(p.Step.CostMicros) + " of at most " + ui.Dollars(loop.MaxCost) + ", " + spent
	}
	out = append(out, ui.Plain(sentenceCase(spent)+"."))
	if turn, scored := bestTurn(p); scored {
		out = append(out, ui.Plain(fmt.Sprintf(" Best so far: round %d, score %s.", turn+1, p.Step.Score)))
	}
	return out
}

// loopEnd says after how many rounds and why a loop ended, and which round was taken.
func (r *runView) loopEnd(p passage, rounds int) ui.Sentence {
	if p.Step.State != engine.StepDone {
		return nil
	}
	out := ui.Sentence{ui.Plain("Ended after "), ui.Strong(ui.Plural(int64(rounds), "round", "rounds"))}
	var reason string
	if json.Unmarshal(partOfRecord(r.View.Outputs[p.Step.Output], "reason"), &reason) == nil && endWords(reason) != "" {
		out = append(out, ui.Plain(": "+endWords(reason)))
	}
	out = append(out, ui.Plain("."))
	if turn, scored := bestTurn(p); scored {
		out = append(out, ui.Plain(fmt.Sprintf(" Round %d was taken, score %s.", turn+1, p.Step.Score)))
	}
	return out
}

// bestTurn is the best round so far, where rounds are scored.
func bestTurn(p passage) (int, bool) {
	turn, err := strconv.Atoi(string(p.Step.Chosen))
	return turn, err == nil && p.Step.Score != ""
}

// roundsOf is how many rounds of a loop have begun.
func (r *runView) roundsOf(group passage) int {
	rounds := 0
	for _, p := range r.Passages {
		if p.Node == group.Node && p.Round > rounds {
			rounds = p.Round
		}
	}
	return rounds
}

// partReason is the score of a round or branch.
func (r *runView) partReason(p passage) ui.Sentence {
	if p.Step == nil {
		return nil
	}
	var out ui.Sentence
	if p.Step.Score != "" {
		out = append(out, ui.Plain("Score "), ui.Strong(p.Step.Score), ui.Plain(" "))
	}
	if p.Lane != nil && p.Step.State == engine.StepDone {
		if said := shortValue(r.View.Outputs[p.Step.Output]); said != "" {
			out = append(out, ui.Plain("Result: "), ui.Name(said))
		}
	}
	if p.Step.State == engine.StepFailed && p.Step.Failure != nil {
		out = append(out, ui.Name(p.Step.Failure.Message))
	}
	return out
}

// besideReason tells about branches side by side: what is waited for, or what came of it.
func (r *runView) besideReason(p passage) ui.Sentence {
	both := p.Node.Parallel()
	if both == nil {
		return nil
	}
	lanes := r.lanesOf(p)
	ended := 0
	for _, lane := range lanes {
		if lane.Step != nil && !lane.Step.State.Open() {
			ended++
		}
	}
	all := ui.Plural(int64(len(lanes)), "branch", "branches")
	if p.Step.State.Open() {
		waits := "Goes on when all are done"
		if both.WaitFor == pipeline.WaitFirst {
			waits = "Goes on with the first good result; the others are then stopped"
		}
		return ui.Sentence{ui.Strong(fmt.Sprintf("%d of %s done. ", ended, all)), ui.Plain(waits + ".")}
	}
	if p.Step.State != engine.StepDone {
		return nil
	}
	return r.combinedWords(p, both, lanes)
}

// combinedWords say which branch won, or what all of them came to.
func (r *runView) combinedWords(p passage, both *pipeline.CompiledParallel, lanes []passage) ui.Sentence {
	switch {
	case both.WaitFor == pipeline.WaitFirst:
		for _, lane := range lanes {
			if lane.Step != nil && lane.Step.State == engine.StepDone {
				return ui.Sentence{ui.Strong(lane.name()), ui.Plain(" was the first with a good result. The others were stopped.")}
			}
		}
	case both.Combine == pipeline.CombineBest:
		if lane, ok := bestLane(lanes); ok {
			return ui.Sentence{ui.Strong(lane.name()), ui.Plain(" has the best score, " + lane.Step.Score + ".")}
		}
	case both.Combine == pipeline.CombineMajority:
		return r.voteWords(p, lanes)
	}
	return ui.Words("The results of all branches were collected.")
}

// bestLane is the branch with the highest score.
func bestLane(lanes []passage) (passage, bool) {
	var best passage
	for _, lane := range lanes {
		if lane.Step == nil || lane.Step.Score == "" {
			continue
		}
		if best.Step == nil || higher(lane.Step.Score, best.Step.Score) {
			best = lane
		}
	}
	return best, best.Step != nil
}

// higher compares two exact decimals.
func higher(a, b string) bool {
	left, isLeft := new(big.Rat).SetString(a)
	right, isRight := new(big.Rat).SetString(b)
	return isLeft && isRight && left.Cmp(right) > 0
}

// voteWords count how many branches said what most said.
func (r *runView) voteWords(p passage, lanes []passage) ui.Sentence {
	var output struct {
		Results  map[string]json.RawMessage `json:"results"`
		Combined json.RawMessage            `json:"combined"`
	}
	if json.Unmarshal(r.View.Outputs[p.Step.Output], &output) != nil {
		return ui.Words("What most branches said was taken.") // too long to be counted here
	}
	combined := compact(output.Combined)
	if combined == "" || combined == "null" {
		return ui.Sentence{ui.Strong("No majority: "), ui.Plain("no answer was given by more than half of the " + ui.Plural(int64(len(lanes)), "branch", "branches") + ".")}
	}
	agreed := 0
	for _, result := range output.Results {
		if compact(result) == combined {
			agreed++
		}
	}
	return ui.Sentence{ui.Strong(fmt.Sprintf("%d of %d agree: ", agreed, len(lanes))), ui.Name(shortValue(output.Combined))}
}

// lanesOf are the branches of a step in order.
func (r *runView) lanesOf(group passage) []passage {
	var lanes []passage
	for _, p := range r.Passages {
		if p.Node == group.Node && p.Lane != nil {
			lanes = append(lanes, p)
		}
	}
	return lanes
}

// tookWords is how long a part took, or has taken.
func tookWords(part engine.StepRun, now time.Time) string {
	if part.State == engine.StepQueued {
		return ""
	}
	if part.EndedAt != nil {
		now = *part.EndedAt
	}
	return ui.Duration(max(0, now.Sub(part.BegunAt)))
}
