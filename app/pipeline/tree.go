package pipeline

import (
	"fmt"
	"strconv"
	"strings"
)

// tree is a document's steps as nodes in their places, nothing compiled yet.
type tree struct {
	roots   []*Node
	all     []*Node          // in reading order
	byID    map[string]*Node // the first of each id
	tooDeep *Node            // the first step that sits too deep; those inside it are left out
	tooMany bool
}

// Nodes point into d, which must not change while the tree is in use.
func grow(d *Document) *tree {
	t := &tree{byID: map[string]*Node{}}
	t.roots = t.list(d.Steps, nil, ListRoot, 0)
	return t
}

// list makes the nodes of one list. Steps are numbered 1, 2, 3 at the top, a, b, c
// inside a step whatever list of it they are in, then 1, 2, 3 again; before is
// how many siblings the lists before this one have.
func (t *tree) list(steps []Step, parent *Node, key ListKey, before int) []*Node {
	out := make([]*Node, 0, len(steps))
	on := 0 // how many so far have a number
	for i := range steps {
		if len(t.all) >= MaxSteps {
			t.tooMany = true
			break
		}
		n := &Node{Step: &steps[i], Parent: parent, List: key, Index: i, Depth: 1, Number: strconv.Itoa(on + 1)}
		if parent != nil {
			n.Depth = parent.Depth + 1
			n.Number = parent.Number + numeral(n.Depth, before+on)
		}
		if n.IsOff() {
			n.Number = ""
		} else {
			on++
		}
		t.all = append(t.all, n)
		if _, taken := t.byID[n.ID()]; !taken {
			t.byID[n.ID()] = n
		}
		out = append(out, n)
		t.children(n)
	}
	for _, n := range out {
		n.siblings = out
	}
	return out
}

// Letters and digits take turns, so that 2b1 reads without dots.
func numeral(depth, i int) string {
	if depth%2 == 0 {
		return letters(i)
	}
	return strconv.Itoa(i + 1)
}

// What sits too deep is left out, so that nobody walks deeper than the limit.
func (t *tree) children(n *Node) {
	lists := listsOf(n.Step)
	if n.Depth >= MaxNesting {
		for _, l := range lists {
			if len(l.steps) > 0 && t.tooDeep == nil {
				t.tooDeep = n
			}
		}
		return
	}
	before := 0
	for _, l := range lists {
		n.Lists = append(n.Lists, ChildList{Key: l.key, Name: l.name, Nodes: t.list(l.steps, n, l.key, before)})
		before += len(l.steps) - countOff(l.steps)
	}
}

func countOff(steps []Step) int {
	off := 0
	for i := range steps {
		if steps[i].Off {
			off++
		}
	}
	return off
}

// listsOf gives the lists of a step's kind and then those of its on_error.
func listsOf(s *Step) []nested {
	var out []nested
	if s.With != nil {
		out = s.With.lists()
	}
	for i, c := range s.OnError {
		if c.Do == CatchSteps {
			out = append(out, nested{ErrorList(i), "If it fails", fmt.Sprintf("on_error[%d].steps", i), c.Steps})
		}
	}
	return out
}

// ErrorList is the key of the steps that entry i of on_error runs. An id of a
// case has no colon, so the two never meet.
func ErrorList(i int) ListKey { return ListKey(errorPrefix + strconv.Itoa(i)) }

const errorPrefix = "error:"

// HandlesError tells a list of steps that runs because of a failure.
func (k ListKey) HandlesError() bool { return strings.HasPrefix(string(k), errorPrefix) }

// inside lists the steps around n, the outermost first, and n itself last.
func (n *Node) inside() []*Node {
	var out []*Node
	for ; n != nil; n = n.Parent {
		out = append([]*Node{n}, out...)
	}
	return out
}

// title names the step in sentences.
func (n *Node) title() string {
	name := shown(n.Step.Name)
	if name == "" {
		name = n.Step.Kind.Title()
	}
	return "Step " + n.Number + " “" + name + "”"
}
