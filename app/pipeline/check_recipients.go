package pipeline

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
			if c.readsChosen(n, s, chosen) {
				c.warn(n, s.path, "an AI chooses who gets this mail, and nobody checks it. Put “%s” before it, or choose the address yourself.", KindReview.Title())
				break
			}
		}
	}
}

// hosts warns of calls whose address an AI chose and nobody reviewed: it could send what
// the call carries to a host of a stranger.
func (c *checker) hosts() {
	chosen := c.chosenByAI()
	for _, n := range c.tree.all {
		w, ok := n.Step.With.(*HTTP)
		if ok && !n.reviewed() && hostInserted(w.URL) && c.readsChosen(n, slot{source: w.URL, text: true}, chosen) {
			c.warn(n, "with.url", "an AI chooses where this call goes, and nobody checks it. Put “%s” before it, or write the host yourself.", KindReview.Title())
		}
	}
}

// chosenByAI lists the steps whose values an AI made, or that compute with such or hand
// such on. What a group hands on is known only behind the steps inside it, so it is
// looked at until nothing is added.
func (c *checker) chosenByAI() map[string]bool {
	chosen := map[string]bool{}
	for before := -1; before < len(chosen); {
		before = len(chosen)
		for _, n := range c.tree.all {
			if !chosen[n.ID()] && c.handsOnChosen(n, chosen) {
				chosen[n.ID()] = true
			}
		}
	}
	return chosen
}

func (c *checker) handsOnChosen(n *Node, chosen map[string]bool) bool {
	for _, list := range n.Lists {
		if list.Key.HandlesError() && len(list.Nodes) > 0 && chosen[list.Nodes[len(list.Nodes)-1].ID()] {
			return true
		}
	}
	switch n.Kind() {
	case KindAI:
		return true
	case KindSet:
		for _, s := range n.Step.With.slots() {
			if c.readsChosen(n, s, chosen) {
				return true
			}
		}
	case KindRepeat, KindEach, KindParallel:
		for _, list := range n.Lists {
			for _, inside := range list.Nodes {
				if chosen[inside.ID()] {
					return true
				}
			}
		}
	}
	return false
}

// readsChosen reports whether a slot reads a value that an AI made; one is enough. An
// item is such where the list's items are.
func (c *checker) readsChosen(n *Node, s slot, chosen map[string]bool) bool {
	refs, err := refsOf(s)
	if err != nil {
		return false
	}
	for _, r := range refs {
		if r.Root == "steps" && len(r.Path) > 0 && chosen[r.Path[0]] {
			return true
		}
		each := (reader{checker: c, node: n}).around(KindEach)
		if r.Root != "item" || each == nil {
			continue
		}
		if w, ok := each.Step.With.(*Each); ok && c.readsChosen(each, slot{source: w.Items}, chosen) {
			return true
		}
	}
	return false
}

// reviewed reports whether a person has decided on every way to n: a review
// stands earlier in its list or in a list around it, and its failure is not gone past.
func (n *Node) reviewed() bool {
	for ; n != nil; n = n.Parent {
		for _, earlier := range n.siblings[:n.Index] {
			if earlier.Kind() == KindReview && !earlier.Step.handled() {
				return true
			}
		}
	}
	return false
}
