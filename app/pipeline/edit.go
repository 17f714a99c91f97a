package pipeline

import (
	"fmt"
	"reflect"
	"strings"
)

// Place is where a step sits or shall sit: before the entry Index of a list of a step.
type Place struct {
	Parent string  // id of the step around; empty at the top
	List   ListKey // which list of Parent
	Index  int     // from 0; as many as the list has means its end
}

// BadEdit is an edit that cannot be made, in a sentence for the person who asked for it.
type BadEdit struct{ Reason string }

// Error gives the sentence.
func (e *BadEdit) Error() string { return e.Reason }

func badEdit(format string, args ...any) error { return &BadEdit{fmt.Sprintf(format, args...)} }

// stepList is one list of steps inside a step, to be changed in place.
type stepList struct {
	key   ListKey
	steps *[]Step
}

// inside gives the lists of steps inside s, those of on_error last. A test holds it
// against what the kinds list themselves.
func (s *Step) inside() []stepList {
	var out []stepList
	switch w := s.With.(type) {
	case *Branch:
		for i := range w.Cases {
			out = append(out, stepList{ListKey(w.Cases[i].ID), &w.Cases[i].Steps})
		}
		out = append(out, stepList{ListOtherwise, &w.Otherwise})
	case *Repeat:
		out = append(out, stepList{ListSteps, &w.Steps})
	case *Each:
		out = append(out, stepList{ListSteps, &w.Steps})
	case *Parallel:
		for i := range w.Branches {
			out = append(out, stepList{ListKey(w.Branches[i].ID), &w.Branches[i].Steps})
		}
	}
	for i := range s.OnError {
		if s.OnError[i].Do == CatchSteps {
			out = append(out, stepList{ErrorList(i), &s.OnError[i].Steps})
		}
	}
	return out
}

// clone is a document that shares nothing with d.
func clone[T any](d T) T {
	var own T
	copyInto(reflect.ValueOf(&own).Elem(), reflect.ValueOf(&d).Elem())
	return own
}

// copyInto copies the types that documents are made of.
func copyInto(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyInto(to.Elem(), from.Elem())
		}
	case reflect.Interface:
		if !from.IsNil() {
			inner := reflect.New(from.Elem().Type()).Elem()
			copyInto(inner, from.Elem())
			to.Set(inner)
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				copyInto(to.Index(i), from.Index(i))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMap(from.Type()))
			for _, key := range from.MapKeys() {
				to.SetMapIndex(key, from.MapIndex(key)) // recorded answers, which nobody writes to
			}
		}
	case reflect.Struct:
		for i := range from.NumField() {
			copyInto(to.Field(i), from.Field(i))
		}
	default:
		to.Set(from)
	}
}

// StepAt finds a step of the document by its id, with where it sits.
func (d *Document) StepAt(id string) (*Step, Place, bool) {
	return findStep(&d.Steps, Place{}, id)
}

func findStep(steps *[]Step, at Place, id string) (*Step, Place, bool) {
	for i := range *steps {
		s := &(*steps)[i]
		if s.ID == id {
			at.Index = i
			return s, at, true
		}
		for _, inner := range s.inside() {
			if found, place, ok := findStep(inner.steps, Place{Parent: s.ID, List: inner.key}, id); ok {
				return found, place, true
			}
		}
	}
	return nil, Place{}, false
}

// listAt finds the list that a place is in.
func (d *Document) listAt(at Place) (*[]Step, error) {
	if at.Parent == "" && at.List == ListRoot {
		return &d.Steps, nil
	}
	parent, _, ok := d.StepAt(at.Parent)
	if !ok {
		return nil, badEdit("The step around this place is not there any more. Somebody may have removed it; choose another place.")
	}
	for _, inner := range parent.inside() {
		if inner.key == at.List {
			return inner.steps, nil
		}
	}
	return nil, badEdit("“%s” has no such list of steps any more. Choose another place.", shown(parent.Name))
}

// depthAt is how deep a step at a place is; 1 at the top.
func (d *Document) depthAt(at Place) int {
	depth := 1
	for at.Parent != "" {
		depth++
		_, at, _ = d.StepAt(at.Parent)
	}
	return depth
}

// Levels is how many levels a step takes with those inside it.
func (s *Step) Levels() int {
	most := 0
	for _, inner := range s.inside() {
		for i := range *inner.steps {
			most = max(most, (*inner.steps)[i].Levels())
		}
	}
	return most + 1
}

// ids are those of the document's steps, those inside others included.
func (d *Document) ids() map[string]bool {
	out := map[string]bool{}
	for _, n := range grow(d).all {
		out[n.ID()] = true
	}
	return out
}

// FreshName makes a name that formulas can use out of words, unlike all that are taken, and
// takes it.
func FreshName(words, otherwise string, taken map[string]bool) string {
	base := slug(words, otherwise)
	id := base
	for n := 2; taken[id] || !validName(id); n++ {
		tail := fmt.Sprintf("_%d", n)
		id = base[:min(len(base), 40-len(tail))] + tail
	}
	taken[id] = true
	return id
}

// slug spells words as an id does: small letters, digits and single underscores. What
// holds none of them becomes otherwise.
func slug(words, otherwise string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(words) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		if b.Len() == 32 {
			break
		}
	}
	if out := strings.Trim(b.String(), "_"); out != "" && !reserved[out] {
		return out
	}
	return otherwise
}

// NameOf spells what people typed as a name that formulas can use; empty for what holds no
// letter.
func NameOf(typed string) string {
	name := slug(typed, "")
	if name == "" && strings.TrimSpace(typed) != "" {
		return "field"
	}
	return name
}
