package pipeline

import "time"

// reuseOf is how old an identical earlier answer may be that a step takes; 0: it takes
// none.
func reuseOf(with Config) time.Duration {
	switch w := with.(type) {
	case *AI:
		return reuseFor(w.Reuse, w.ReuseFor)
	case *HTTP:
		return reuseFor(w.Reuse, w.ReuseFor)
	}
	return 0
}

func reuseFor(marked bool, long *Duration) time.Duration {
	switch {
	case !marked:
		return 0
	case long == nil:
		return time.Duration(DefaultReuse)
	}
	return time.Duration(*long)
}

// reuse checks how long answers may be taken again.
func (c *checker) reuse(n *Node, marked bool, long *Duration) {
	switch {
	case long == nil:
	case !marked:
		c.blocks(n, "with.reuse_for", "it says how old an earlier answer may be and takes none. Turn the reuse of earlier answers on, or remove the time.")
	case *long > MaxReuse:
		c.blocks(n, "with.reuse_for", "an earlier answer may be at most 365 days old. Choose a shorter time.")
	}
}

// Reuses tells whether any step of the program takes earlier answers.
func (p *Program) Reuses() bool {
	for _, node := range p.byID {
		if node.Reuse > 0 {
			return true
		}
	}
	return false
}
