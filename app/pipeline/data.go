package pipeline

import "tollgate/app/expr"

// Datum is one value that a place of a document may read.
type Datum struct {
	Ref   string // as formulas spell it: "steps.triage.category"
	Step  string // id of the step that gives it; empty for the input and for what is around
	From  string // what gives it, for people: "Sort the e-mail", "Input"
	Label string // what it is, for people: "Category", "Total: Amount"
	Field Field
	May   bool // it may be empty
}

// maxDataDepth is how far values inside records are listed.
const maxDataDepth = 3

// DataAt lists what the settings of a step may read, in reading order: what is around it,
// the input, and what surely or maybe ran before. behind names the list of steps inside it
// behind which the place is read; ListRoot is the step itself. An empty step is the
// document's own result.
func (p *Program) DataAt(step string, behind ListKey) []Datum {
	c := &checker{doc: &p.doc, tree: grow(&p.doc)}
	n := c.tree.byID[step]
	if n == nil && step != "" {
		return nil
	}
	r := reader{checker: c, node: n, slot: innerSlot{list: behind}}
	out := r.surroundings()
	for _, target := range c.tree.all {
		if target.IsOff() || target.Step.With == nil {
			continue
		}
		if standing, _ := r.standing(target); standing != neverThere {
			out = append(out, stepData(target, standing == maybeThere)...)
		}
	}
	return out
}

// AllData lists every value that some place of the document may read, by which names for
// all of them can be made.
func (p *Program) AllData() []Datum {
	out := fieldData(nil, Datum{Ref: "input", From: "Input"}, p.doc.Input, 1)
	for _, f := range RunFields() {
		out = append(out, Datum{Ref: "run." + f.Name, From: "This run", Label: f.Title(), Field: f})
	}
	for _, f := range ErrorFields() {
		out = append(out, Datum{Ref: "error." + f.Name, From: "The failure", Label: f.Title(), Field: f})
	}
	out = append(out, indexDatum, roundDatum)
	out = append(out, Datum{Ref: "item", From: "This item", Label: "Whole item"})
	c := &checker{doc: &p.doc, tree: grow(&p.doc)}
	for _, n := range c.tree.all {
		if n.Kind() == KindEach {
			out = append(out, itemData(c.itemOf(n))[1:]...)
		}
		out = append(out, stepData(n, false)...)
	}
	return out
}

var (
	indexDatum = Datum{Ref: "index", From: "This item", Label: "Place in the list", Field: Field{Type: TypeNumber}}
	roundDatum = Datum{Ref: "round", From: "This round", Label: "Number", Field: Field{Type: TypeNumber}}
)

// surroundings lists what is around a place: its item or round, its failure, the input and
// the run.
func (r reader) surroundings() []Datum {
	var out []Datum
	if each := r.around(KindEach); each != nil {
		out = append(append(out, itemData(r.itemOf(each))...), indexDatum)
	}
	if w, ok := r.parallel(); ok {
		out = append(out, itemData(w.lane())...)
	}
	if r.around(KindRepeat) != nil {
		out = append(out, roundDatum)
	}
	if r.handlesFailure() {
		for _, f := range ErrorFields() {
			out = append(out, Datum{Ref: "error." + f.Name, From: "The failure", Label: f.Title(), Field: f})
		}
	}
	out = append(out, fieldData(nil, Datum{Ref: "input", From: "Input"}, r.doc.Input, 1)...)
	for _, f := range RunFields() {
		out = append(out, Datum{Ref: "run." + f.Name, From: "This run", Label: f.Title(), Field: f})
	}
	return out
}

// parallel is the configuration of a step whose own formulas read a branch's result.
func (r reader) parallel() (*Parallel, bool) {
	if r.node == nil || r.slot.list != ListRoot {
		return nil, false
	}
	w, ok := r.node.Step.With.(*Parallel)
	return w, ok
}

// handlesFailure tells whether a place is inside of what is done about a failure.
func (r reader) handlesFailure() bool {
	if r.slot.list.HandlesError() {
		return true
	}
	for n := r.node; n != nil; n = n.Parent {
		if n.List.HandlesError() {
			return true
		}
	}
	return false
}

func itemData(item Field) []Datum {
	whole := Datum{Ref: "item", From: "This item", Label: "Whole item", Field: item}
	fields, _ := item.parts()
	return fieldData([]Datum{whole}, Datum{Ref: "item", From: "This item"}, fields, 1)
}

func stepData(n *Node, may bool) []Datum {
	from := n.Step.Name
	if from == "" {
		from = n.Kind().Title()
	}
	fields := Outputs(*n.Step)
	if len(fields) == 0 {
		return nil
	}
	return fieldData(nil, Datum{Ref: "steps." + n.ID(), Step: n.ID(), From: from, May: may}, fields, 1)
}

// fieldData lists fields, and those inside records and files, under what holds them.
func fieldData(out []Datum, in Datum, fields []Field, depth int) []Datum {
	for _, f := range fields {
		if _, ok := expr.Place(in.Ref + "." + f.Name); !ok {
			continue
		}
		one := in
		one.Ref, one.Field, one.May = in.Ref+"."+f.Name, f, in.May || !f.Required
		if one.Label = f.Title(); in.Label != "" {
			one.Label = in.Label + ": " + f.Title()
		}
		out = append(out, one)
		if inner, known := f.parts(); known && depth < maxDataDepth {
			out = fieldData(out, one, inner, depth+1)
		}
	}
	return out
}
