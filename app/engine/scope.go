package engine

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// scope is what formulas can read at a position: the run's input and facts, items, and
// the outputs of steps that ended. What is not there yet is loaded when a decision asks
// for it.
type scope struct {
	input     any
	run       map[string]any
	found     map[place]*found
	values    map[Digest]any                   // outputs, by their digests
	items     map[StepRunID]any                // values of items, by their rows
	spent     map[StepRunID]int64              // what the calls inside a row have cost, in micro-USD
	turns     map[StepRunID][]turn             // the turns of a group that is joined
	last      map[StepRunID]int                // the last round of a loop, from 0
	zone      *time.Location                   // the workspace's; nil until it was asked for
	keys      map[string]tenants.ProviderKeyID // the workspace's own, by provider; nil until they were asked for
	prices    ledger.PriceList                 // the workspace's; nil until they were asked for
	above     []RunID                          // the runs above, the nearest first; nil until they were asked for
	earlier   map[Digest]earlierLook           // results that may be taken again
	silent    map[string]Digest                // steps that send nothing in a rerun, with what they give instead
	callInput []byte                           // what the position's own call was given
}

// place is where a row is found: a step in the frame around it, or a turn in its group.
type place struct {
	frame StepRunID // zero at the top
	step  string
	turn  int
}

// found is what was looked up at a place.
type found struct {
	id     StepRunID // zero: nothing has begun there
	state  StepState
	chosen pipeline.ListKey
	output value
}

// value is stored by its digest, or about to be stored from its bytes; neither is none.
// Of a value that this decision or the slice's last call made, decoded is what formulas
// read.
type value struct {
	bytes   []byte
	digest  Digest
	decoded any
}

func (v value) isZero() bool { return v.bytes == nil && v.digest.IsZero() }

// turn is an item or branch side by side whose group is joined.
type turn struct {
	index   int
	list    pipeline.ListKey
	state   StepState
	score   string
	output  []byte // nil where it gave none
	failure *Failure
}

// want is something that must be loaded before a decision can be made.
type want struct {
	kind   wantKind
	place  place
	row    StepRunID
	digest Digest
	within time.Duration // how old an earlier result may be
}

type wantKind int

const (
	wantRow     wantKind = iota // what stands at the place
	wantValue                   // the value with the digest
	wantItem                    // the value of the item in the row, which has the digest
	wantSpent                   // what the calls inside the row have cost
	wantTurns                   // the turns of the group in the row
	wantLast                    // the last round of the loop in the row
	wantZone                    // the workspace's zone
	wantKeys                    // the workspace's own keys at providers
	wantPrices                  // what models cost the workspace
	wantAbove                   // the runs above this one
	wantEarlier                 // the result of a step that was asked what the digest says
)

// errMissing stops a decision that needs values which are not loaded yet.
var errMissing = errors.New("values are missing")

// clone copies what a decision may add to.
func (s scope) clone() scope {
	s.found = maps.Clone(s.found)
	return s
}

// keep forgets what a slice that goes on inside the frames does not read again, so that
// one that goes through a long list does not fill the memory.
func (s *scope) keep(frames []StepRun) {
	around := map[StepRunID]bool{{}: true}
	for _, frame := range frames {
		around[frame.ID] = true
	}
	maps.DeleteFunc(s.found, func(p place, _ *found) bool { return !around[p.frame] })
	maps.DeleteFunc(s.items, func(id StepRunID, _ any) bool { return !around[id] })
	clear(s.values)
	clear(s.spent)
	clear(s.turns)
}

// put makes a row's output readable. The error tells of one that is no JSON.
func (s scope) put(p place, f found) error {
	if f.output.bytes != nil && f.output.decoded == nil {
		decoded, err := expr.DecodeJSON(f.output.bytes)
		if err != nil {
			return err
		}
		f.output.decoded = decoded
	}
	s.found[p] = &f
	return nil
}

// know is put for what a decision itself has made, which can always be read.
func (d *decider) know(p place, f found) {
	if err := d.scope.put(p, f); err != nil {
		delete(d.scope.found, p)
	}
}

func foundRow(row StepRun, output value) found {
	return found{id: row.ID, state: row.State, chosen: row.Chosen, output: output}
}

// position is where formulas are read: inside a frame, behind so many steps of its list.
type position struct {
	in      *frame
	before  int
	failure *Failure // that is about to be handled, where one is
}

// at is the position at which a step is read that begins inside group.
func at(node *pipeline.Node, group *frame) position { return position{in: group, before: node.Index} }

// behind is the position behind all steps of a frame.
func (d *decider) behind(f *frame) position { return position{in: f, before: len(d.listIn(f))} }

// see makes what formulas with the refs read at a position into d.vars. It returns
// errMissing, with everything noted that is to be loaded, where some is not known.
func (d *decider) see(where position, refs ...[]expr.Ref) error {
	steps := map[string]any{}
	d.vars = expr.Scope{"input": d.scope.input, "run": d.scope.run, "steps": steps}
	var missing error
	for _, list := range refs {
		for _, ref := range list {
			if err := d.seeOne(where, ref, steps); err != nil {
				missing = err
			}
		}
	}
	return missing
}

func (d *decider) seeOne(where position, ref expr.Ref, steps map[string]any) error {
	switch ref.Root {
	case "item":
		return d.seeItem(where)
	case "index":
		if item := where.in.innermost(isItem); item != nil {
			d.vars["index"] = json.Number(strconv.Itoa(item.row.Turn))
		}
	case "round":
		if round := where.in.innermost(isRound); round != nil {
			d.vars["round"] = json.Number(strconv.Itoa(round.row.Turn + 1))
		}
	case "callback":
		d.seeCallback(where, ref)
	case "error":
		d.seeFailure(where)
	case "steps":
		return d.seeStep(where, ref, steps)
	}
	return nil
}

func isItem(f *frame) bool  { return f.row.Kind == KindItem }
func isRound(f *frame) bool { return f.row.Kind == KindRound }

func (d *decider) seeItem(where position) error {
	item := where.in.innermost(isItem)
	if item == nil {
		return nil
	}
	value, ok := d.scope.items[item.row.ID]
	if !ok {
		return d.ask(want{kind: wantItem, row: item.row.ID, digest: item.row.Input})
	}
	d.vars["item"] = value
	return nil
}

// seeCallback makes the address readable at which a step that comes later is answered: in
// the frame around that holds it.
func (d *decider) seeCallback(where position, ref expr.Ref) {
	if len(ref.Path) == 0 || d.callbacks == nil { // whoever traces a value needs none
		return
	}
	target := d.program.Node(ref.Path[0])
	for f := where.in; target != nil; f = f.outer {
		if d.inside(f, []*pipeline.Node{target}) == 0 && (f != nil || target.Parent == nil) {
			addresses, ok := d.vars["callback"].(map[string]any)
			if !ok {
				addresses = map[string]any{}
				d.vars["callback"] = addresses
			}
			addresses[target.ID()], _ = d.callbacks(f.id(), target.ID())
			return
		}
		if f == nil {
			return
		}
	}
}

// seeFailure makes the failure readable that is handled around.
func (d *decider) seeFailure(where position) {
	failure := where.failure
	if around := where.in.innermost(func(f *frame) bool { return f.row.Caught() }); failure == nil && around != nil {
		failure = around.row.Failure
	}
	if failure != nil {
		d.vars["error"] = errorFacts(failure)
	}
}

func (d *decider) seeStep(where position, ref expr.Ref, steps map[string]any) error {
	if len(ref.Path) == 0 {
		return nil
	}
	target := d.program.Node(ref.Path[0])
	if target == nil || steps[ref.Path[0]] != nil {
		return nil
	}
	place, ok, err := d.locate(target, where)
	if err != nil || !ok {
		return err
	}
	row, err := d.row(place)
	if err != nil {
		return err
	}
	output, err := d.read(row.given())
	if err == nil && output != nil {
		steps[ref.Path[0]] = output
	}
	return err
}

// given is the output of a row; one that has not ended well has none.
func (f *found) given() value {
	if f.state != StepDone && f.state != StepSkipped {
		return value{}
	}
	return f.output
}

// ask notes what must be loaded.
func (d *decider) ask(w want) error {
	if !slices.Contains(d.missing, w) {
		d.missing = append(d.missing, w)
	}
	return errMissing
}

// row is what stands at a place. In a frame that this decision began there is only what
// it has put there.
func (d *decider) row(p place) (*found, error) {
	if f := d.scope.found[p]; f != nil {
		return f, nil
	}
	if d.fresh[p.frame] {
		return &found{}, nil
	}
	return nil, d.ask(want{kind: wantRow, place: p})
}

// read is a value as formulas read it; none is nil.
func (d *decider) read(v value) (any, error) {
	switch {
	case v.decoded != nil || v.isZero():
		return v.decoded, nil
	case v.bytes != nil:
		return expr.DecodeJSON(v.bytes)
	}
	decoded, ok := d.scope.values[v.digest]
	if !ok {
		return nil, d.ask(want{kind: wantValue, digest: v.digest})
	}
	return decoded, nil
}
