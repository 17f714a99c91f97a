package engine

import (
	"errors"
	"maps"

	"tollgate/app/expr"
)

// scope is what formulas can read at a position: the run's input and facts, and the
// outputs of steps that ended. Outputs are loaded when a decision asks for them.
type scope struct {
	input     any
	run       map[string]any
	outputs   map[string]any  // step id → decoded output
	known     map[string]bool // steps that were looked up, with or without an output
	callInput []byte          // what the position's own call was given
}

// errMissing stops a decision that needs values which are not loaded yet.
var errMissing = errors.New("values are missing")

// need makes sure that the outputs of all steps in refs were looked up.
func (d *decider) need(refs []expr.Ref) error {
	var missing []string
	for _, ref := range refs {
		if ref.Root != "steps" || len(ref.Path) == 0 {
			continue
		}
		if id := ref.Path[0]; !d.scope.known[id] && d.program.Node(id) != nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	d.missing = append(d.missing, missing...)
	return errMissing
}

// clone copies what a decision may add to.
func (s scope) clone() scope {
	s.outputs, s.known = maps.Clone(s.outputs), maps.Clone(s.known)
	if s.outputs == nil {
		s.outputs = map[string]any{}
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	return s
}

// put makes a step's output readable; no bytes mean that it has none.
func (s scope) put(stepID string, output []byte) error {
	s.known[stepID] = true
	delete(s.outputs, stepID)
	if len(output) == 0 {
		return nil
	}
	value, err := expr.DecodeJSON(output)
	if err != nil {
		return err
	}
	s.outputs[stepID] = value
	return nil
}

func (s scope) expr() expr.Scope {
	return expr.Scope{"input": s.input, "steps": s.outputs, "run": s.run}
}
