package pipeline

import (
	"fmt"
	"slices"
)

// Money is what a workspace knows of money when a document of its is checked. Amounts are
// micro-USD.
type Money struct {
	// Priced tells whether a model has a price with which it may be called.
	Priced func(model string) bool
	// RunCap is the cap of runs whose document names none; nil for none.
	RunCap *int64
	// Words writes an amount for people.
	Words func(micros int64) string
}

// CheckMoney tells what there is to fix in a document for money's sake, in reading order:
// models without a price, which are never called, and loops and steps that may cost more
// than the cap of a run allows.
func CheckMoney(d Document, m Money) []Problem {
	d = d.Active()
	c := checker{doc: &d, tree: grow(&d)}
	limit := d.RunCap
	if limit == nil {
		limit = m.RunCap
	}
	for _, n := range c.tree.all {
		switch w := n.Step.With.(type) {
		case *AI:
			c.priced(n, w, m)
			if limit != nil && w.MaxCost > *limit {
				c.warn(n, "with.max_cost", "one run of it may cost up to %s, and the cap of a run is %s, so it may be stopped there. Lower its limit, or raise the cap.", m.Words(w.MaxCost), m.Words(*limit))
			}
		case *Repeat:
			if most := loopBound(w); limit != nil && most > *limit {
				c.warn(n, "with.max_cost", "this loop could cost up to %s, and the cap of a run is %s, so it may be stopped in the middle. Lower its rounds or its limit on money, or raise the cap.", m.Words(most), m.Words(*limit))
			}
		}
	}
	return c.problems
}

func (c *checker) priced(n *Node, w *AI, m Money) {
	for i, model := range w.Models {
		if m.Priced(model) {
			continue
		}
		field := fmt.Sprintf("with.models[%d]", i)
		if i == 0 {
			c.blocks(n, field, "the price of the model “%s” is not known, so it is never called. Choose another model, or enter its price.", model)
		} else {
			c.warn(n, field, "the price of the model “%s” is not known, so it is passed over. Choose another model, or enter its price.", model)
		}
	}
}

// loopBound is the most that a loop may cost: its own limit, or less where each of its
// rounds is bounded.
func loopBound(w *Repeat) int64 {
	round, known := stepsBound(w.Steps)
	if rounds := int64(w.MaxRounds); known && rounds > 0 && round <= w.MaxCost/rounds {
		return round * rounds
	}
	return w.MaxCost
}

// stepsBound is the most that steps may cost together; false where one has no limit.
func stepsBound(steps []Step) (int64, bool) {
	var sum int64
	for _, step := range steps {
		if step.Off {
			continue
		}
		switch w := step.With.(type) {
		case *AI:
			if w.MaxCost <= 0 {
				return 0, false
			}
			sum += w.MaxCost
		case *Repeat:
			sum += loopBound(w)
		case *Set, *Wait, *Event, *Email, *HTTP, *Review, *Emit, *Stop:
		default:
			return 0, false
		}
		if slices.ContainsFunc(step.OnError, func(c Catch) bool { return len(c.Steps) > 0 }) || sum < 0 {
			return 0, false
		}
	}
	return sum, true
}
