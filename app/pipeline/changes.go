package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// Change is one thing in which two documents differ, in a sentence.
type Change struct {
	Step string // id of the step; empty for the pipeline itself
	Says string
	// Before and After are whole texts where a long one changed, for a word by word look.
	Before, After string
}

// Changes lists in what a later document differs from an earlier one, in reading order:
// the pipeline itself, then its steps, then what is gone. Steps that are turned off count
// as not being there. The number of the rules does not count.
func Changes(before, after Document) []Change {
	off := map[string]bool{}
	offIDs(after.Steps, false, off)
	before, after = before.Active(), after.Active()
	c := comparison{before: grow(&before), after: grow(&after), off: off}
	c.document(before, after)
	for _, n := range c.after.all {
		c.step(n)
	}
	c.removed()
	return c.changes
}

type comparison struct {
	before, after *tree
	off           map[string]bool
	moved         map[string]bool // by id, worked out once
	changes       []Change
}

func (c *comparison) say(step string, format string, args ...any) {
	c.changes = append(c.changes, Change{Step: step, Says: fmt.Sprintf(format, args...)})
}

// document compares what is not a step, by the same rules as settings of steps.
func (c *comparison) document(before, after Document) {
	before.Semantics, after.Semantics = 0, 0
	before.Steps, after.Steps = nil, nil
	c.entries("", "", entriesOf(before), entriesOf(after))
}

// step compares one step with what it was.
func (c *comparison) step(n *Node) {
	was := c.before.byID[n.ID()]
	switch {
	case was == nil && n.Parent != nil && c.before.byID[n.Parent.ID()] == nil:
		return // told with the step around it
	case was == nil:
		c.say(n.ID(), "%s is added%s: %s.", n.title(), place(n), strings.ToLower(n.Kind().Title()[:1])+n.Kind().Title()[1:]+with(n))
		return
	}
	if c.movedSteps()[n.ID()] {
		c.say(n.ID(), "%s is moved%s.", n.title(), place(n))
	}
	if was.Step.Name != n.Step.Name {
		c.say(n.ID(), "Step %s “%s” is now called “%s”.", n.Number, shown(was.Step.Name), shown(n.Step.Name))
	}
	if was.Kind() != n.Kind() {
		c.say(n.ID(), "%s changes from “%s” to “%s”.", n.title(), was.Kind().Title(), n.Kind().Title())
		return
	}
	c.entries(n.ID(), n.title()+": ", entriesOf(bareStep(*was.Step)), entriesOf(bareStep(*n.Step)))
}

// bareStep is a step without its name and the steps inside.
func bareStep(s Step) Step {
	s = s.Alone()
	s.ID, s.Name, s.Kind = "", "", ""
	return s
}

// removed tells of steps that are gone, those inside others with them.
func (c *comparison) removed() {
	for _, n := range c.before.all {
		id := n.ID()
		switch {
		case c.after.byID[id] != nil || n.Parent != nil && c.after.byID[n.Parent.ID()] == nil:
		case c.off[id]:
			c.say(id, "“%s” is turned off%s.", shown(n.Step.Name), with(n))
		default:
			c.say("", "“%s” is removed%s.", shown(n.Step.Name), with(n))
		}
	}
}

// place tells what is around a step.
func place(n *Node) string {
	if n.Parent == nil {
		return ""
	}
	return " inside “" + shown(n.Parent.Step.Name) + "”"
}

// with tells how many steps are inside a step.
func with(n *Node) string {
	if inner := n.Step.count() - 1; inner > 0 {
		return ", with " + plural(inner, "step", "steps") + " inside"
	}
	return ""
}

// movedSteps are the steps that sit in another list, or in another order among those that
// stayed: as few as explain the difference.
func (c *comparison) movedSteps() map[string]bool {
	if c.moved != nil {
		return c.moved
	}
	c.moved = map[string]bool{}
	lists := map[string][2][]string{} // ids of those in the same list before and after
	for _, n := range c.after.all {
		was := c.before.byID[n.ID()]
		switch {
		case was == nil:
		case listOf(was) != listOf(n):
			c.moved[n.ID()] = true
		default:
			pair := lists[listOf(n)]
			pair[1] = append(pair[1], n.ID())
			lists[listOf(n)] = pair
		}
	}
	for _, n := range c.before.all {
		pair := lists[listOf(n)]
		if slices.Contains(pair[1], n.ID()) {
			pair[0] = append(pair[0], n.ID())
			lists[listOf(n)] = pair
		}
	}
	for _, pair := range lists {
		for _, part := range diff(pair[0], pair[1]) {
			if part.kind == wordAdded {
				for _, id := range part.tokens {
					c.moved[id] = true
				}
			}
		}
	}
	return c.moved
}

func listOf(n *Node) string {
	if n.Parent == nil {
		return ""
	}
	return n.Parent.ID() + "/" + string(n.List)
}

// Alone is the step without the steps inside it.
func (s Step) Alone() Step {
	s = clone(s)
	for _, inner := range s.inside() {
		*inner.steps = nil
	}
	return s
}
