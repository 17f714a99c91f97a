package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/app/expr"
)

// CompiledCatch is one entry of a step's on_error.
type CompiledCatch struct {
	Classes   []string // empty: all
	Do        CatchAction
	List      *ChildList      // of CatchSteps
	Default   []byte          // of CatchDefault, JSON
	Ask       *CompiledReview // of CatchAsk
	Exception string          // of CatchFail; empty: as it failed
	Message   *expr.Text      // of CatchFail; nil: the failure's own
	refs      []expr.Ref
}

// Refs lists every value that asking, or the message, reads.
func (k *CompiledCatch) Refs() []expr.Ref { return k.refs }

// Asks is the question of the step: its own, or that of the entry of on_error whose
// list is given. It is nil where there is none.
func (n *Node) Asks(list ListKey) *CompiledReview {
	for i := range n.Catches {
		if list == ErrorList(i) {
			return n.Catches[i].Ask
		}
	}
	return n.Review()
}

// Fits tells whether the entry is for failures of a technical class, or for a named
// exception where raised is true.
func (k *CompiledCatch) Fits(class string, raised bool) bool {
	return len(k.Classes) == 0 || slices.Contains(k.Classes, class) || raised && slices.Contains(k.Classes, ClassException)
}

func (c *compiler) catches(n *Node) []CompiledCatch {
	var out []CompiledCatch
	for i, k := range n.Step.OnError {
		one := CompiledCatch{Classes: k.Classes, Do: k.Do, List: n.Child(ErrorList(i)), Default: k.Default, Exception: k.Exception}
		if k.Do == CatchAsk {
			one.Ask = c.review(k.Ask)
		}
		one.Message = c.optional(k.Message)
		one.refs, c.refs = c.refs, nil
		out = append(out, one)
	}
	return out
}

// goesOn tells that the run goes on behind a failure of the step which the entry fits:
// not where it is left to fail, nor where what is done about it ends with a stop.
func (k Catch) goesOn() bool {
	stops := k.Do == CatchSteps && len(k.Steps) > 0 && k.Steps[len(k.Steps)-1].Kind == KindStop
	return k.Do != CatchFail && !stops
}

// handled tells that some failure of the step does not stop what is behind it.
func (s *Step) handled() bool { return slices.ContainsFunc(s.OnError, Catch.goesOn) }

// ErrorFields lists what error holds in the steps and texts of an on_error.
func ErrorFields() []Field {
	return []Field{
		{Name: "class", Label: "Class", Type: TypeText, Required: true},
		{Name: "name", Label: "Name of the exception", Type: TypeText, Required: true},
		{Name: "message", Label: "What happened", Type: TypeText, Long: true, Required: true},
		{Name: "step", Label: "Step that failed", Type: TypeText, Required: true},
	}
}

// handledOutputs are a step's outputs where its failures may be handled: what they
// give then counts as well, and only what each of them gives is surely there.
func handledOutputs(own []Field, s *Step) []Field {
	out := slices.Clone(own)
	for _, k := range s.OnError {
		if k.goesOn() {
			out = mergeFields(out, k.outputs())
		}
	}
	return out
}

// outputs are the fields of what a handled failure gives.
func (k Catch) outputs() []Field {
	switch {
	case k.Do == CatchAsk && k.Ask != nil:
		return reviewOutputs(k.Ask)
	case k.Do == CatchSteps && len(k.Steps) > 0:
		return Outputs(k.Steps[len(k.Steps)-1])
	case k.Do == CatchDefault:
		value, err := expr.DecodeJSON(k.Default)
		record, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil
		}
		var fields []Field
		for name, entry := range record {
			fields = append(fields, Field{Name: name, Type: anything, Required: entry != nil})
		}
		slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		return fields
	}
	return nil
}

// mergeFields joins the fields of two values of which either may be there.
func mergeFields(one, other []Field) []Field {
	var out []Field
	for _, f := range one {
		twin, both := findField(other, f.Name)
		f.Required = f.Required && both && twin.Required
		out = append(out, f)
	}
	for _, f := range other {
		if _, both := findField(one, f.Name); !both {
			f.Required = false
			out = append(out, f)
		}
	}
	return out
}

// catch checks one entry of on_error, but for its formulas and texts.
func (c *checker) catch(n *Node, path string, k Catch) {
	for i, class := range k.Classes {
		if !validName(class) {
			c.blocks(n, fmt.Sprintf("%s.classes[%d]", path, i), "“%s” is not the name of a failure. %s.", shown(class), nameRule)
		}
	}
	switch k.Do {
	case CatchSteps:
		if len(k.Steps) == 0 {
			c.blocks(n, path+".steps", "“if it fails” has no steps to run. Add one, or choose something else.")
		}
	case CatchDefault:
		if len(k.Default) == 0 {
			c.blocks(n, path+".default", "“if it fails” has no value to go on with. Enter one.")
		}
	case CatchAsk:
		if k.Ask == nil {
			c.blocks(n, path+".ask", "“if it fails” has no question to ask. Enter it and choose people.")
		} else {
			c.review(n, path+".ask.", k.Ask)
			c.settingsOf(n, path+".ask.", k.Ask)
		}
	case CatchFail:
		if k.Exception != "" && !validName(k.Exception) {
			c.blocks(n, path+".exception", "“%s” is not the name of an exception. %s.", shown(k.Exception), nameRule)
		}
	default:
		c.blocks(n, path+".do", "“%s” is nothing that can be done about a failure. Use steps, default, ask or fail.", shown(string(k.Do)))
	}
}

// caughtBefore warns of entries that no failure reaches, since one before takes all.
func (c *checker) caughtBefore(n *Node) {
	for i, k := range n.Step.OnError {
		if len(k.Classes) == 0 && i+1 < len(n.Step.OnError) {
			c.warn(n, fmt.Sprintf("on_error[%d]", i+1), "“if it fails” has an entry that is never reached, because one before it takes every failure. Move or remove one of them.")
			return
		}
	}
}

// catchSlots are the formulas and texts of a step's on_error. They see the failure.
func catchSlots(s *Step) []innerSlot {
	var out []innerSlot
	for i, k := range s.OnError {
		slots := []slot{{fmt.Sprintf("on_error[%d].message", i), "Message", k.Message, true}}
		if k.Ask != nil {
			slots = append(slots, k.Ask.slotsAt(fmt.Sprintf("on_error[%d].ask.", i))...)
		}
		for _, one := range slots {
			out = append(out, innerSlot{one, ErrorList(i)})
		}
	}
	return out
}

// failure checks a value of the failure that is handled.
func (r reader) failure() {
	inside := r.slot.list.HandlesError()
	for n := r.node; n != nil && !inside; n = n.Parent {
		inside = n.List.HandlesError()
	}
	if !inside {
		r.block("“%s”, which exists only in what is done “if it fails”. Pick another value.", shown(r.ref.String()))
		return
	}
	r.part("the failure", ErrorFields(), r.ref.Path)
}
