package pipeline

// Active is the document without the steps that are turned off, however deep. They stay
// in the draft only: checks, runs and versions know nothing of them. d itself is left as
// it is; what does not change is shared.
func (d Document) Active() Document {
	if !anyOff(d.Steps) {
		return d
	}
	d = d.mapped(func(c Config) Config { return c }) // lists of its own
	d.Steps = activeSteps(d.Steps)
	return d
}

func activeSteps(steps []Step) []Step {
	var out []Step
	for i := range steps {
		if steps[i].Off {
			continue
		}
		for _, inner := range steps[i].inside() {
			*inner.steps = activeSteps(*inner.steps)
		}
		out = append(out, steps[i])
	}
	return out
}

func anyOff(steps []Step) bool {
	for i := range steps {
		if steps[i].Off {
			return true
		}
		for _, inner := range steps[i].inside() {
			if anyOff(*inner.steps) {
				return true
			}
		}
	}
	return false
}

// offIDs are the ids of all steps that are turned off, those inside them included.
func offIDs(steps []Step, off bool, into map[string]bool) {
	for i := range steps {
		s := &steps[i]
		if off || s.Off {
			into[s.ID] = true
		}
		for _, inner := range s.inside() {
			offIDs(*inner.steps, off || s.Off, into)
		}
	}
}

// Sketch is a document as pages of a draft show it: in its tree, with nothing compiled,
// so that it may be as wrong as it likes. Steps that are turned off have no number.
func Sketch(d Document) *Program {
	p := &Program{doc: d}
	t := grow(&p.doc)
	p.roots, p.byID = t.roots, t.byID
	for _, n := range t.all {
		n.Reuse = reuseOf(n.Step.With)
	}
	return p
}

// IsOff tells whether the step, or one around it, is turned off.
func (n *Node) IsOff() bool {
	for ; n != nil; n = n.Parent {
		if n.Step.Off {
			return true
		}
	}
	return false
}
