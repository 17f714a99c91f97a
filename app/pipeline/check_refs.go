package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"tollgate/app/expr"
)

// scopeRule bounds what a formula may begin from.
type scopeRule int

const (
	anyRoot    scopeRule = iota
	onlyInput            // what is read before the first step runs
	onlyAnswer           // what is read where another system's answer is judged
)

// slot compiles one formula or text and checks everything it reads. n is nil for
// the document's own slots, which see what a finished run has.
func (c *checker) slot(n *Node, s slot, rule scopeRule) {
	c.slotBehind(n, innerSlot{s, ListRoot}, rule)
}

// slotBehind is slot for one that is read behind a list of steps inside its own.
func (c *checker) slotBehind(n *Node, s innerSlot, rule scopeRule) {
	if strings.TrimSpace(s.source) == "" {
		return // a missing one is told where it is needed
	}
	if len([]rune(s.source)) > MaxText {
		c.blocks(n, s.path, "%s is longer than %d characters. Shorten it.", s.label, MaxText)
		return
	}
	refs, err := refsOf(s.slot)
	var p *expr.Problem
	if errors.As(err, &p) {
		c.blocks(n, s.path, "%s, line %d, column %d: %s", s.label, p.Line, p.Column, p.Message)
		return
	}
	told := map[string]bool{}
	for _, r := range refs {
		r := reader{c, n, s, r}
		if key := r.ref.String(); !told[key] {
			told[key] = true
			r.check(rule)
		}
	}
}

// Nothing is kept of what was compiled: checks run on drafts, which change.
func refsOf(s slot) ([]expr.Ref, error) {
	if s.text {
		t, err := expr.ParseText(s.source)
		if err != nil {
			return nil, err
		}
		return t.Refs(), nil
	}
	f, err := expr.Compile(s.source)
	if err != nil {
		return nil, err
	}
	return f.Refs(), nil
}

// reader is one place that reads one value.
type reader struct {
	*checker
	node *Node
	slot innerSlot
	ref  expr.Ref
}

func (r reader) block(format string, args ...any) {
	r.blocks(r.node, r.slot.path, "%s uses %s", r.slot.label, fmt.Sprintf(format, args...))
}

// A reader that says what to take instead is left alone.
func (r reader) mayBeEmpty(why string) {
	if !r.ref.Guarded {
		r.warn(r.node, r.slot.path, "%s uses “%s”, which may be empty, because %s. Say what to take then with default(…), or pick another value.",
			r.slot.label, shown(r.ref.String()), why)
	}
}

// Each root has its own rule for what it holds and where it exists.
func (r reader) check(rule scopeRule) {
	if rule == onlyInput && r.ref.Root != "input" {
		r.block("“%s”, but only the input is known when a run gets its name. Pick a value of the input.", shown(r.ref.String()))
		return
	}
	if rule == onlyAnswer && r.ref.Root != "answer" {
		r.block("“%s”, but only the answer is known where it is judged. Pick a value of “answer”: its status, headers or body.", shown(r.ref.String()))
		return
	}
	switch r.ref.Root {
	case "answer":
		if rule != onlyAnswer {
			r.block("“answer”, which exists only where the answer of a look-up is judged. Pick another value.")
			return
		}
		r.part("the answer", named("status", "headers", "body"), r.ref.Path)
	case "input":
		r.part("the input", r.doc.Input, r.ref.Path)
	case "run":
		r.part("run", RunFields(), r.ref.Path)
	case "steps":
		r.step()
	case "callback":
		r.callback()
	case "error":
		r.failure()
	case "item":
		r.item()
	case "index":
		if r.around(KindEach) == nil {
			r.block("“index”, which exists only inside “%s”. Pick another value.", KindEach.Title())
		}
	case "round":
		if r.around(KindRepeat) == nil {
			r.block("“round”, which exists only inside “%s”. Pick another value.", KindRepeat.Title())
		}
	}
}

// around is the innermost step of a kind that the reading place is inside of; nil
// where there is none. What is read behind a step's own list is inside of that step;
// what is done about its failure is not, since no item or round of it is left then.
func (r reader) around(kind Kind) *Node {
	n, list := r.node, r.slot.list
	if n != nil && list == ListRoot {
		n, list = n.Parent, n.List
	}
	for ; n != nil; n, list = n.Parent, n.List {
		if n.Kind() == kind && !list.HandlesError() {
			return n
		}
	}
	return nil
}

// item is an entry of the list around, or a branch's result where branches side by
// side are compared.
func (r reader) item() {
	if r.node != nil && r.slot.list == ListRoot {
		if w, ok := r.node.Step.With.(*Parallel); ok {
			r.inside(w.lane())
			return
		}
	}
	each := r.around(KindEach)
	if each == nil {
		r.block("“item”, which exists only inside “%s”. Pick another value.", KindEach.Title())
		return
	}
	r.inside(r.itemOf(each))
}

// inside follows the rest of a path into a value of a field's type.
func (r reader) inside(f Field) {
	if fields, known := f.parts(); known {
		r.part("“"+r.ref.Root+"”", fields, r.ref.Path)
	}
}

// part follows a path through fields and tells the first name that is not there.
func (r reader) part(of string, fields []Field, path []string) {
	for _, name := range path {
		f, ok := findField(fields, name)
		if !ok {
			r.block("“%s”, but %s has no “%s”. It has: %s.", shown(r.ref.String()), of, shown(name), quoted(fieldNames(fields)))
			return
		}
		if !f.Required {
			r.mayBeEmpty("“" + shown(f.Title()) + "” does not have to be filled in")
			return
		}
		var known bool
		if fields, known = f.parts(); !known {
			return
		}
		of = "“" + shown(f.Title()) + "”"
	}
}

// step checks a value of a step: that the step exists, has run by then, and has
// such a value.
func (r reader) step() {
	if len(r.ref.Path) == 0 {
		r.block("all steps at once. Name the one it needs, as in steps.triage.")
		return
	}
	id := r.ref.Path[0]
	target := r.tree.byID[id]
	if target == nil && r.off[id] {
		r.block("step “%s”, which is turned off. Turn it on, or pick another value.", shown(id))
		return
	}
	if target == nil {
		r.block("step “%s”, which does not exist. Pick another value.", shown(id))
		return
	}
	standing, why := r.standing(target)
	switch standing {
	case neverThere:
		r.block("“%s” of %s, %s", shown(r.ref.String()), target.title(), why)
		return
	case maybeThere:
		r.mayBeEmpty(why)
	case surelyThere:
	}
	if target.Step.With != nil {
		r.mayBeHandled(target.Step)
		if standing == maybeThere {
			r.ref.Guarded = true // told already
		}
		r.part("it", Outputs(*target.Step), r.ref.Path[1:])
	}
}

// mayBeHandled tells of a value that the step itself always gives, and what is done
// about its failure may not.
func (r *reader) mayBeHandled(s *Step) {
	if len(r.ref.Path) < 2 || !s.handled() {
		return
	}
	own, ok := findField(ownOutputs(*s), r.ref.Path[1])
	if all, there := findField(Outputs(*s), r.ref.Path[1]); there && !all.Required && (own.Required || !ok) {
		r.mayBeEmpty("the step may fail, and what is done then may not give it")
		r.ref.Guarded = true
	}
}

// standing says whether a step has run when another one reads it.
type standing int

const (
	neverThere standing = iota
	maybeThere
	surelyThere
)

// standing compares the places of the reading step and of the one it reads.
func (r reader) standing(target *Node) (standing, string) {
	above := target.inside()
	if r.node == nil {
		return throughLists(above[0], above[1:])
	}
	if target == r.node {
		return neverThere, "which is the step itself. Pick a value of an earlier step."
	}
	mine := r.node.inside()
	level := 0
	for level < len(mine) && level < len(above) && mine[level] == above[level] {
		level++
	}
	switch {
	case level == len(above):
		return neverThere, "which is not finished before the steps inside it are. Pick a value of an earlier step."
	case level == len(mine):
		return r.ownInner(above[level:])
	}
	here, there := mine[level], above[level]
	if here.List != there.List {
		return r.otherList(here, there)
	}
	if there.Index < here.Index {
		return throughLists(there, above[level+1:])
	}
	if sharedLoop(here) {
		return maybeThere, "it is from the round before, and the first round has none"
	}
	return neverThere, "which comes later. Move this step down or pick another value."
}

// ownInner is a step's own configuration reading a step inside it: only what is read
// behind a list of its steps does, as a loop's end condition behind a round.
func (r reader) ownInner(path []*Node) (standing, string) {
	if r.slot.list != ListRoot && path[0].List == r.slot.list {
		return throughLists(path[0], path[1:])
	}
	return neverThere, "which comes later. Pick a value of an earlier step."
}

// otherList is a step in another list of the same step.
func (r reader) otherList(here, there *Node) (standing, string) {
	switch {
	case here.List.HandlesError() && !there.List.HandlesError():
		if kind := here.Parent.Kind(); kind == KindEach || kind == KindRepeat {
			return neverThere, "which ran in an item or round that failed. Pick another value."
		}
		return maybeThere, "it may be what failed"
	case here.Parent.Kind() == KindParallel:
		return neverThere, "which runs at the same time. Pick another value, or put the steps one after the other."
	}
	return neverThere, "which is in another case, so only one of the two runs. Pick another value."
}

// Both steps are inside the loop when the list they part in is. A list inside it keeps
// no item apart from one round to the next.
func sharedLoop(n *Node) bool {
	for ; n.Parent != nil; n = n.Parent {
		switch kind := n.Parent.Kind(); {
		case n.List.HandlesError():
		case kind == KindEach:
			return false
		case kind == KindRepeat:
			return true
		}
	}
	return false
}

// throughLists follows a path down from a finished step into the lists inside it.
func throughLists(top *Node, down []*Node) (standing, string) {
	out := surelyThere
	for parent, rest := top, down; len(rest) > 0; parent, rest = rest[0], rest[1:] {
		switch {
		case rest[0].List.HandlesError():
			out = maybeThere
		case parent.Kind() == KindEach:
			return neverThere, "which runs once for each item. Use the results of " + parent.title() + " instead."
		case parent.Kind() == KindBranch:
			out = maybeThere
		case parent.Kind() == KindParallel:
			if w, ok := parent.Step.With.(*Parallel); ok && w.WaitFor == WaitFirst {
				out = maybeThere
			}
		}
	}
	return out, "its step runs only in some cases"
}
