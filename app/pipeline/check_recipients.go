package pipeline

import "tollgate/app/expr"

// recipients warns of mails whose addresses an AI chose and nobody reviewed: what
// a model reads can tell it where to send things.
func (c *checker) recipients() {
	chosen := c.chosenByAI()
	for _, n := range c.tree.all {
		w, ok := n.Step.With.(*Email)
		if !ok || n.reviewed() {
			continue
		}
		for _, s := range w.slots()[:len(w.To)+len(w.CC)] {
			refs, err := refsOf(s)
			if err == nil && readsAny(refs, chosen) {
				c.warn(n, s.path, "an AI chooses who gets this mail, and nobody checks it. Put “%s” before it, or choose the address yourself.", KindReview.Title())
				break
			}
		}
	}
}

// chosenByAI lists the steps whose values an AI made, or that compute with such.
func (c *checker) chosenByAI() map[string]bool {
	chosen := map[string]bool{}
	for _, n := range c.tree.all {
		switch n.Step.With.(type) {
		case *AI:
			chosen[n.ID()] = true
		case *Set:
			for _, s := range n.Step.With.slots() {
				if refs, err := refsOf(s); err == nil && readsAny(refs, chosen) {
					chosen[n.ID()] = true
				}
			}
		}
	}
	return chosen
}

// One value that an AI made is enough.
func readsAny(refs []expr.Ref, steps map[string]bool) bool {
	for _, r := range refs {
		if r.Root == "steps" && len(r.Path) > 0 && steps[r.Path[0]] {
			return true
		}
	}
	return false
}

// reviewed reports whether a person has decided on every way to n: a review
// stands earlier in its list or in a list around it.
func (n *Node) reviewed() bool {
	for ; n != nil; n = n.Parent {
		for _, earlier := range n.siblings[:n.Index] {
			if earlier.Kind() == KindReview {
				return true
			}
		}
	}
	return false
}
