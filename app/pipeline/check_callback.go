package pipeline

// callback checks the address at which another system answers: that of a step that has
// one, and that comes later in the list of the reading step or in one around it, since an
// address is for one execution.
func (r reader) callback() {
	if len(r.ref.Path) != 1 {
		r.block("“%s”. Name the step that waits for the answer, as in callback.signed.", shown(r.ref.String()))
		return
	}
	target := r.tree.byID[r.ref.Path[0]]
	if target == nil {
		r.block("step “%s”, which does not exist. Pick another.", shown(r.ref.Path[0]))
		return
	}
	w, ok := target.Step.With.(*Event)
	switch {
	case !ok || !w.Callback:
		r.block("the address of %s, which has none. Let that step be answered at an address.", target.title())
	case !r.leadsTo(target):
		r.block("the address of %s, which must come later in the same list of steps, or in one around it.", target.title())
	}
}

// leadsTo tells whether a step comes later in the reading step's list or in one around.
func (r reader) leadsTo(target *Node) bool {
	for n := r.node; n != nil; n = n.Parent {
		if n.Parent == target.Parent && n.List == target.List {
			return n.Index < target.Index
		}
	}
	return false
}
