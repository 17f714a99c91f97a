package pipeline

import (
	"bytes"
	"reflect"
	"slices"
)

// SameWork tells whether two steps do the same: they are of one kind and configured
// alike. Names, notes and the steps inside do not count, nor how often a failed try is
// made again.
func SameWork(a, b *Step) bool {
	return a.Kind == b.Kind && alike(bare(a.With), bare(b.With))
}

// SameCatches tells whether two steps act alike on their failures.
func SameCatches(a, b *Step) bool { return alike(bareCatches(a.OnError), bareCatches(b.OnError)) }

// TakesInput tells whether what was given for a field of an earlier version does for the
// field of the same name of a later one. known is false where the earlier has none.
func TakesInput(before Field, known bool, after Field) bool {
	if !known {
		return !after.Required
	}
	if after.Required && !before.Required {
		return false
	}
	before, after = unnamed(before), unnamed(after)
	return alike(before, after)
}

// alike compares by the one form in which the document is written.
func alike[T any](a, b T) bool {
	return bytes.Equal(appendValue(nil, reflect.ValueOf(&a)), appendValue(nil, reflect.ValueOf(&b)))
}

// unnamed is a field without its words, and without whether it has to be filled in.
func unnamed(f Field) Field {
	f.Name, f.Label, f.Help, f.Required = "", "", "", false
	f.Choices = slices.Clone(f.Choices)
	for i := range f.Choices {
		f.Choices[i].Label = ""
	}
	return f
}

// bare is a configuration without the steps inside and the names of their lists.
func bare(c Config) Config {
	switch c := c.(type) {
	case *Branch:
		out := Branch{Cases: slices.Clone(c.Cases)}
		for i := range out.Cases {
			out.Cases[i].Name, out.Cases[i].Steps = "", nil
		}
		return &out
	case *Repeat:
		out := *c
		out.Steps = nil
		return &out
	case *Each:
		out := *c
		out.Steps = nil
		return &out
	case *Parallel:
		out := *c
		out.Branches = slices.Clone(c.Branches)
		for i := range out.Branches {
			out.Branches[i].Name, out.Branches[i].Steps = "", nil
		}
		return &out
	}
	return c
}

func bareCatches(catches []Catch) []Catch {
	out := slices.Clone(catches)
	for i := range out {
		out[i].Steps = nil
	}
	return out
}
