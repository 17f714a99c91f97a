package engine

import (
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
)

// moment is everything that decide may read: where a branch of a run stands and what
// came out there.
type moment struct {
	program *pipeline.Program
	run     Run
	step    *StepRun  // the position; nil at the run's beginning
	groups  []StepRun // the open groups around it, innermost first
	slice   SliceID
	window  StepRunID // that the slice counts towards
	fence   int64
	block   []StepRun // items that the slice has taken on, in order
	outcome outcome
	scope   scope
	bars    bars
	yield   bool // end the slice behind the step that finished
	now     time.Time

	inputBound func(AIInput) int64    // most input tokens that an input can be charged for
	maxOutput  func(model string) int // most tokens that it can answer with; 0: not known
	newID      func() StepRunID
	callbacks  func(frame StepRunID, step string) (address, key string) // at which a step in a frame is answered
}

// bars keep steps from beginning: the committer found that their begin cannot be
// written as it was decided, and asks again with the reason.
type bars struct {
	failed map[string]Failure   // step id → why it fails at once
	capped map[string]string    // step id → why it must wait for money
	spent  map[string]StepRunID // step id → the loop whose money does not reach for it
	cap    *ledger.CapReached   // which cap it waits at
}

// decide says what follows from a moment. It is pure: the same moment gives the same
// decision, and it may be asked again, with more values or bars, until it has all it
// needs.
func decide(m moment) decision {
	d := &decider{moment: m, fresh: map[StepRunID]bool{}}
	if m.step != nil {
		d.was = m.step.Chain
	}
	var err error
	switch m.outcome.kind {
	case entered:
		err = d.begin(m.program.Roots(), 0, nil)
	case arrived:
		err = d.arrive()
	case done:
		err = d.finish()
	case failed:
		err = d.failedTry()
	case passed:
		err = d.after(m.program.Node(m.step.StepID), d.frames(m.groups))
	case again:
		err = d.callAgain()
	case interrupted:
		err = d.interruptedTry()
	case renewed:
		err = d.renew()
	}
	if err != nil { // only ever errMissing
		return decision{missing: d.missing}
	}
	d.settlePlace()
	return d.decision
}

// decider collects the changes of one decision.
type decider struct {
	moment
	decision
	vars  expr.Scope          // what the formulas that are read now see
	fresh map[StepRunID]bool  // frames that this decision began
	made  map[Digest]*earlier // the result that this decision keeps, for what it begins
	was   Chain               // where the position's step stood in its chain
	ends  *frame              // the frame in which the slice goes on, where it does
}

func (d *decider) add(c change) {
	if begun, ok := c.(insertStep); ok && d.renews(begun.row) {
		begun.renews = true
		c = begun
	}
	d.changes = append(d.changes, c)
}

// maxChanges is where a decision that goes on and on without an outside call is cut, so
// that no commit grows without bound.
const maxChanges = 400

// cut ends the decision behind a step that ended, where it has grown too long; the slice
// goes on from there. Behind branches that were joined a slice must not stand: it could
// not be told from one that came late to the join.
func (d *decider) cut(ended *pipeline.Node, group *frame) bool {
	if len(d.changes) < maxChanges || forks(ended.Kind()) {
		return false
	}
	row := d.scope.found[place{frame: group.id(), step: ended.ID()}]
	if row == nil || row.id.IsZero() {
		return false
	}
	d.standAt(StepRun{ID: row.id, StepID: ended.ID(), Kind: ended.Kind(), State: row.state}, group)
	return true
}

// standAt lets the slice go on at a row inside a frame, after the commit.
func (d *decider) standAt(row StepRun, outer *frame) {
	d.stand, d.ends = &stand{row: row, groups: outer.rows()}, outer
}

// arriveAt lets the slice go on at a list or at branches side by side: it takes on more,
// joins, or leaves.
func (d *decider) arriveAt(group *frame) {
	d.standAt(group.row, group.outer)
	d.ends = group
}

// park goes on elsewhere while a step inside the frame waits: with the next item of the
// list around, where there is one.
func (d *decider) park(in *frame) {
	if window := in.window(); window != nil {
		d.arriveAt(window)
	}
}

// settlePlace notes where the slice stands and counts, and gives back the items it does
// not go on with.
func (d *decider) settlePlace() {
	goesOn := d.next != nil || d.stand != nil
	window := d.ends.window()
	if len(d.block) > 0 && (!goesOn || d.yields || window.id() != d.window) {
		d.add(releaseItems{})
		d.block = nil
	}
	d.items = d.block
	switch {
	case d.stand != nil:
		d.add(moveSlice{to: d.stand.row.ID, window: window.id()})
	case d.next != nil && window.id() != d.window:
		d.add(moveSlice{window: window.id()})
	}
	d.counts = window.id()
}

// finish acts on a result: of a call, of a wait, or the answer to a question about the step.
func (d *decider) finish() error {
	switch {
	case d.step.Caught():
		if refused := d.answeredCatch(); refused != nil {
			d.outcome = outcome{kind: failed, failure: refused}
			return d.fail()
		}
		d.outcome.failure = d.step.Failure
	case d.step.Kind == pipeline.KindRepeat:
		return d.answeredLoop()
	case d.step.Kind == pipeline.KindHTTP && d.step.State == StepWaiting:
		return d.answeredArrival()
	case d.step.Kind == pipeline.KindAI && d.step.State == StepWaiting:
		return d.answeredCall()
	}
	return d.endWell()
}

// endWell ends the position's step with its output and goes on behind it.
func (d *decider) endWell() error {
	d.recordAnswer()
	d.add(d.ended(StepDone))
	d.addMoney()
	d.keepOutput()
	group := d.frames(d.groups)
	row := *d.step
	row.State = StepDone
	d.know(place{frame: group.id(), step: row.StepID}, foundRow(row, value{bytes: d.outcome.output, decoded: d.outcome.decoded}))
	if d.yield {
		d.yields = true
		return nil
	}
	return d.after(d.program.Node(d.step.StepID), group)
}

// after goes on behind a node that has ended: with its next sibling, or by ending the
// group around it.
func (d *decider) after(node *pipeline.Node, group *frame) error {
	return d.begin(d.listIn(group), node.Index+1, group)
}

// begin begins the step at index of a list, and goes on through those that need no
// outside call. Behind the list's end the group ends.
func (d *decider) begin(list []*pipeline.Node, index int, group *frame) error {
	if index > 0 && d.cut(list[index-1], group) {
		return nil
	}
	if index == len(list) {
		return d.endGroup(group)
	}
	node := list[index]
	if failure, ok := d.bars.failed[node.ID()]; ok {
		return d.failBegin(node, group, failure)
	}
	if gives, ok := d.scope.silent[node.ID()]; ok {
		return d.leaveOut(node, group, gives)
	}
	if first, ok := begins[node.Kind()]; ok {
		return first(d, node, group)
	}
	return d.failBegin(node, group, Failure{Class: ClassInternal,
		Message: "This version of Tollgate cannot run a step of the kind “" + node.Kind().Title() + "”."})
}

// begins are how a step of each kind begins. They are set apart from begin, which
// they call in turn.
var begins map[pipeline.Kind]func(*decider, *pipeline.Node, *frame) error

func init() {
	begins = map[pipeline.Kind]func(*decider, *pipeline.Node, *frame) error{
		pipeline.KindSet:      (*decider).beginSet,
		pipeline.KindBranch:   (*decider).beginBranch,
		pipeline.KindReview:   (*decider).beginReview,
		pipeline.KindAI:       (*decider).beginCall,
		pipeline.KindEmail:    (*decider).beginCall,
		pipeline.KindHTTP:     (*decider).beginCall,
		pipeline.KindWait:     (*decider).beginWait,
		pipeline.KindEvent:    (*decider).beginEvent,
		pipeline.KindChild:    (*decider).beginChild,
		pipeline.KindEmit:     (*decider).beginEmit,
		pipeline.KindStop:     (*decider).beginStop,
		pipeline.KindRepeat:   (*decider).beginRepeat,
		pipeline.KindEach:     (*decider).beginEach,
		pipeline.KindParallel: (*decider).beginParallel,
	}
}

// endGroup ends a group whose list is through, and goes on behind it; at the top it
// ends the run.
func (d *decider) endGroup(group *frame) error {
	switch {
	case group == nil:
		return d.completeRun(false)
	case group.row.Caught():
		return d.endCatch(group)
	case group.row.Kind == KindItem:
		return d.endItem(group)
	case group.row.Kind == KindLane:
		return d.endLane(group)
	case group.row.Kind == KindRound:
		return d.endRound(group)
	}
	d.close(group, StepDone, value{bytes: groupOutput(group.row)}, nil)
	return d.after(d.program.Node(group.row.StepID), group.outer)
}

// arrive goes on at a row that is a group or a part of one.
func (d *decider) arrive() error {
	self := &frame{row: *d.step, insert: -1, outer: d.frames(d.groups)}
	switch {
	case self.holdsSteps():
		return d.begin(d.listIn(self), 0, self)
	case self.row.Kind == pipeline.KindEach:
		return d.arriveAtList(self)
	}
	return d.joinLanes(self)
}

// result is what a frame's steps gave: the value of a formula that is read behind them,
// or the output of the last.
func (d *decider) result(f *frame, formula *expr.Formula) (value, *Failure, error) {
	if formula == nil {
		list := d.listIn(f)
		last, err := d.row(place{frame: f.id(), step: list[len(list)-1].ID()})
		if err != nil {
			return value{}, nil, err
		}
		return last.given(), nil, nil
	}
	if err := d.see(d.behind(f), formula.Refs()); err != nil {
		return value{}, nil, err
	}
	output, failure := d.work(formula)
	return value{bytes: output}, failure, nil
}

// completeRun works out the run's result and ends it. Where a step stopped the run
// before its end, what cannot be worked out is empty.
func (d *decider) completeRun(stopped bool) error {
	var refs []expr.Ref
	for _, value := range d.program.Result() {
		refs = append(refs, value.Formula.Refs()...)
	}
	if err := d.see(position{before: len(d.program.Roots())}, refs); err != nil {
		return err
	}
	result, failure := d.evaluate(d.program.Result(), stopped)
	if failure != nil {
		failure.Message = "All steps ran, but the run's result could not be worked out. " + failure.Message
		d.add(endRun{state: RunFailed, failure: failure})
		return nil
	}
	d.add(endRun{state: RunCompleted, result: result, found: d.program.FoundInResult(result)})
	return nil
}
