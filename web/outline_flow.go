package web

import (
	"fmt"
	"strings"
	"time"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// tellFlow says in a sentence what a step does that loops, runs others side by side,
// waits, or stops.
func tellFlow(program *pipeline.Program, node *pipeline.Node, money bool) string {
	switch with := node.Step.With.(type) {
	case *pipeline.Repeat:
		return tellRepeat(with, money)
	case *pipeline.Each:
		return tellEach(with)
	case *pipeline.Parallel:
		return tellParallel(with)
	case *pipeline.Wait:
		if with.For != nil {
			return "Waits " + ui.Duration(time.Duration(*with.For)) + ", then goes on."
		}
		return "Waits until a date that the run works out, then goes on."
	case *pipeline.Event:
		return tellEvent(program, with)
	case *pipeline.Child:
		return tellChild(with)
	case *pipeline.Emit:
		return tellEmit(program, with)
	case *pipeline.Stop:
		return tellStop(program, with)
	}
	return ""
}

// tellRepeat always says all three limits, and what happens at one.
func tellRepeat(with *pipeline.Repeat, money bool) string {
	limits := []string{ui.Plural(int64(with.MaxRounds), "round", "rounds"), ui.Duration(time.Duration(with.MaxTime))}
	if money {
		limits = append(limits, ui.Dollars(with.MaxCost))
	}
	said := "Repeats its steps until a condition holds, for at most " + ui.List(limits)
	switch with.AtLimit {
	case pipeline.LimitBest:
		said += ". At a limit it goes on with the best round so far."
	case pipeline.LimitAsk:
		said += ". At a limit it asks a person."
	default:
		said += ". At a limit it fails."
	}
	return said
}

func tellEach(with *pipeline.Each) string {
	said := fmt.Sprintf("Does its steps for each item of a list, %s at a time; items that wait for people take no place.", ui.Count(int64(with.AtOnce)))
	if with.MaxFailed > 0 {
		return said + fmt.Sprintf(" Up to %s may fail.", ui.Plural(int64(with.MaxFailed), "item", "items"))
	}
	return said + " If one item fails, the step fails."
}

func tellParallel(with *pipeline.Parallel) string {
	var names []string
	for _, lane := range with.Branches {
		names = append(names, "“"+lane.Name+"”")
	}
	said := "Does " + ui.List(names) + " side by side"
	switch {
	case with.WaitFor == pipeline.WaitFirst:
		return said + " and goes on with the first good result; the others are stopped."
	case with.Combine == pipeline.CombineMajority:
		return said + " and takes what more than half of them say."
	case with.Combine == pipeline.CombineBest:
		return said + " and takes the result with the best score."
	}
	return said + " and goes on when all are done."
}

// tellEvent says what is waited for and what silence leads to.
func tellEvent(program *pipeline.Program, with *pipeline.Event) string {
	said := "Waits for the event “" + with.Name + "”"
	if with.Callback {
		said = "Waits for another system’s answer, “" + with.Name + "”, at an address of its own"
	}
	if with.Key != "" {
		said += " with the key " + readable(program, with.Key)
	}
	if with.Deadline == nil {
		return said + ", however long it takes."
	}
	said += ", at most " + ui.Duration(time.Duration(*with.Deadline)) + "; then "
	if with.OnDeadline == pipeline.DeadlineContinue {
		return said + "the run goes on without it."
	}
	return said + "the run fails."
}

func tellStop(program *pipeline.Program, with *pipeline.Stop) string {
	said := "Ends the run"
	if with.Outcome == pipeline.StopRaise {
		said = "Stops with the exception “" + with.Exception + "”"
	}
	if with.Message != "" {
		said += " and says: “" + strings.TrimSuffix(readable(program, with.Message), ".") + "”"
	}
	return said + "."
}
