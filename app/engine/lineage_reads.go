package engine

import (
	"strconv"
	"strings"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// reading is one value that went into a field, and which field of a step it is.
type reading struct {
	by fieldKey
	Read
	follows string
}

// listItems is the pseudo-field of a list that names its items.
const listItems = "\x00items"

// source is what a field is worked out from: references at a position, or all that the
// last step of a list gave.
type source struct {
	refs  []expr.Ref
	where position
	row   StepRunID // whose output is taken whole
}

// readings are all values that went into some fields. Where rows are missing it names all
// of them before it fails.
func (t *tracer) readings(of []fieldKey) ([]reading, error) {
	var out []reading
	var missing error
	for _, key := range of {
		sources, err := t.sources(t.rows[key.row], key.field)
		if err != nil {
			missing = err
			continue
		}
		for _, s := range sources {
			readings, err := t.readSource(key, s)
			if err != nil {
				missing = err
			}
			out = append(out, readings...)
		}
	}
	return out, missing
}

func (t *tracer) readSource(by fieldKey, s source) ([]reading, error) {
	if !s.row.IsZero() {
		row := t.rows[s.row]
		return []reading{{by: by, Read: Read{Ref: expr.Ref{Root: "steps", Path: []string{row.StepID}}, Row: row.ID}}}, nil
	}
	var out []reading
	var missing error
	for _, ref := range s.refs {
		r := reading{by: by, Read: Read{Ref: ref}}
		var err error
		switch {
		case ref.Root == "item":
			if item := s.where.in.innermost(isItem); item != nil {
				r.Row, r.follows = item.row.Parent, listItems
			}
		case ref.Root == "steps" && len(ref.Path) > 0:
			r.Row, err = t.find(ref, s.where)
			r.follows = strings.Join(ref.Path[1:min(len(ref.Path), 2)], "")
		}
		if err != nil {
			missing = err
		}
		out = append(out, r)
	}
	return out, missing
}

// sources are what a field of a row was worked out from.
func (t *tracer) sources(row StepRun, field string) ([]source, error) {
	node := t.program.Node(row.StepID)
	if node == nil {
		return nil, nil
	}
	switch {
	case row.State == StepSkipped:
		return nil, nil // somebody gave the value
	case row.Caught():
		return t.caughtSources(row, node)
	}
	outside := at(node, t.frameOf(row))
	switch node.Kind() {
	case pipeline.KindSet:
		return []source{{refs: setRefs(node.Set(), field), where: outside}}, nil
	case pipeline.KindReview:
		return []source{{refs: reviewRefs(node, field), where: outside}}, nil
	case pipeline.KindBranch:
		return []source{{refs: caseRefs(node.Branch(), row.Chosen), where: outside}}, nil
	case pipeline.KindRepeat:
		return t.loopSources(row, node.Repeat(), field)
	case pipeline.KindEach:
		return t.listSources(row, node, field, outside)
	case pipeline.KindParallel:
		return t.laneSources(row, node.Parallel())
	}
	return []source{{refs: node.Refs(), where: outside}}, nil
}

func setRefs(set *pipeline.CompiledSet, field string) []expr.Ref {
	var refs []expr.Ref
	for _, value := range set.Values {
		if field == "" || value.Name == field {
			refs = append(refs, value.Formula.Refs()...)
		}
	}
	return refs
}

// reviewRefs are what a field was proposed from, or what people were shown who judged.
func reviewRefs(node *pipeline.Node, field string) []expr.Ref {
	for _, editable := range node.Review().Editable {
		if editable.Field.Name == field {
			return editable.Value.Refs()
		}
	}
	if field == "by" || field == "at" {
		return nil
	}
	return node.Refs()
}

// caseRefs are those of the conditions up to the one that held.
func caseRefs(branch *pipeline.CompiledBranch, chosen pipeline.ListKey) []expr.Ref {
	var refs []expr.Ref
	for _, option := range branch.Cases {
		refs = append(refs, refsOf(option.When)...)
		if option.Key == chosen {
			break
		}
	}
	return refs
}

// lastOf is the output of the last step of a frame.
func (t *tracer) lastOf(list []*pipeline.Node, in *frame) ([]source, error) {
	if len(list) == 0 {
		return nil, nil
	}
	row, err := t.rowAt(place{frame: in.id(), step: list[len(list)-1].ID()})
	if err != nil || row.IsZero() {
		return nil, err
	}
	return []source{{row: row}}, nil
}

// caughtSources are those of a step that failed: the steps that handled it, or none where
// a value was taken or a person asked.
func (t *tracer) caughtSources(row StepRun, node *pipeline.Node) ([]source, error) {
	list := node.Child(row.Chosen)
	if list == nil {
		return nil, nil
	}
	return t.lastOf(list.Nodes, t.within(row))
}

// gave is what a part gave: its formula, read behind its steps, or their last output.
func (t *tracer) gave(part StepRunID, formula *expr.Formula, list []*pipeline.Node) ([]source, error) {
	in := t.within(t.rows[part])
	if formula == nil {
		return t.lastOf(list, in)
	}
	return []source{{refs: formula.Refs(), where: position{in: in, before: len(list)}}}, nil
}

// loopSources are those of the round that a loop went on with; how often it went round is
// decided by its condition there.
func (t *tracer) loopSources(row StepRun, loop *pipeline.CompiledRepeat, field string) ([]source, error) {
	turn, err := strconv.Atoi(string(row.Chosen))
	if err != nil {
		return nil, nil
	}
	round, err := t.rowAt(place{row.ID, row.StepID, turn})
	if err != nil || round.IsZero() {
		return nil, err
	}
	var out []source
	if field != "best" {
		out = append(out, source{refs: loop.Until.Refs(), where: position{in: t.within(t.rows[round]), before: len(loop.Steps)}})
	}
	if field == "rounds" || field == "reason" {
		return out, nil
	}
	best, err := t.gave(round, loop.Result, loop.Steps)
	return append(out, best...), err
}

// listSources are the items, and what the first of them that was done was made of.
func (t *tracer) listSources(row StepRun, node *pipeline.Node, field string, outside position) ([]source, error) {
	items := []source{{refs: node.Each().Items.Refs(), where: outside}}
	if field == listItems {
		return items, nil
	}
	first, err := t.firstDone(row)
	if err != nil || first.IsZero() || field == "failed" {
		return items, err
	}
	gave, err := t.gave(first, node.Each().Result, node.Each().Steps)
	return append(items, gave...), err
}

// laneSources are those of all branches that ended well.
func (t *tracer) laneSources(row StepRun, all *pipeline.CompiledParallel) ([]source, error) {
	var out []source
	var missing error
	for i, lane := range all.Lanes {
		part, err := t.rowAt(place{row.ID, row.StepID, i})
		if err != nil {
			missing = err
			continue
		}
		if part.IsZero() || t.rows[part].State != StepDone {
			continue
		}
		gave, err := t.gave(part, lane.Result, lane.List.Nodes)
		if err != nil {
			missing = err
		}
		out = append(out, gave...)
	}
	return out, missing
}
