package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Job is the River job that a slice is driven by.
type Job interface {
	ID() int64
	Tries() int        // which try of the job this is, from 1
	LastError() string // what the try before came to; empty at the first
}

// drive is one slice on its way through a job.
type drive struct {
	*Engine
	worker *Worker
	tenant tenants.ID
	job    Job
	slice  slice

	program *pipeline.Program
	run     Run
	step    *StepRun
	groups  []StepRun
	scope   scope
	outcome outcome
	began   time.Time
	steps   int

	block    []StepRun // items that the slice has taken on and not begun
	took     taking    // how it took them on
	lostJoin int       // how often in a row others were faster to join
}

// Drive carries a slice forward until its branch waits or ends, or its time is up. A
// job whose slice has moved on without it is simply done. After an error River runs
// the job again, which picks the slice up where it is; a slice that fails at every try
// is given up, and its run fails.
func (w *Worker) Drive(ctx context.Context, args DriveSlice, job Job) error {
	name := driven{args.Slice, args.Fence}
	ctx, leave := w.enter(ctx, name)
	defer leave()
	d := &drive{
		Engine: w.Engine, worker: w, tenant: args.Tenant, job: job, began: time.Now(),
		slice: slice{id: args.Slice, fence: args.Fence},
	}
	if job.Tries() > maxFailures {
		return d.giveUp(ctx)
	}
	err := d.claim(ctx, args)
	if err == nil {
		w.noteClaim(name)
	}
	for err == nil {
		err = d.turn(ctx)
	}
	switch {
	case errors.Is(err, errStale), errors.Is(err, errEnded):
		return d.ended(ctx)
	case ctx.Err() != nil, errors.Is(err, errStopping):
		return d.abandon(ctx)
	}
	return err
}

// ended looks after those who wait for what the slice had: its slot, its run's pause, its
// run's place among those of its pipeline.
func (d *drive) ended(ctx context.Context) error {
	d.roomMade()
	if d.program != nil && d.program.Document().Concurrency != nil || !d.run.Parent.IsZero() {
		d.nudgeQueue()
	}
	return d.settlePause(context.WithoutCancel(ctx))
}

// errEnded tells that the slice has ended well, and the job with it.
var errEnded = errors.New("the slice has ended")

// errStopping tells that this process stops and has begun nothing in the slice.
var errStopping = errors.New("this process is stopping")

// turn decides on what came out at the position, commits it, and makes the outside
// call that the commit began. What came out is kept even if we are being stopped.
func (d *drive) turn(ctx context.Context) error {
	if d.mayStop() && (ctx.Err() != nil || d.worker.draining.Load() || d.steps > 0 && d.othersWait()) {
		return errStopping
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if d.mayStop() && d.pausing() {
		return d.putAside(keep)
	}
	if err := d.lookBefore(keep); err != nil {
		return err
	}
	decision, err := d.decideAndCommit(keep)
	switch {
	case tenants.IsLostRace(err):
		return d.afterLostRace(keep, err)
	case err != nil:
		return err
	}
	if decision.awaitsEvent() || decision.forks() {
		d.nudge() // what is waited for may have been sent before; branches want slots
	}
	d.block, d.slice.window, d.lostJoin = decision.items, decision.counts, 0
	switch {
	case decision.next != nil:
		return d.callOn(ctx, *decision.next)
	case decision.stand != nil:
		d.goTo(*decision.stand)
		return nil
	}
	return errEnded
}

// lookBefore looks what others have left to do at the group where the slice has arrived.
func (d *drive) lookBefore(ctx context.Context) error {
	switch {
	case d.outcome.kind != arrived:
		return nil
	case d.step.Caught():
		return d.leaveCaught(ctx)
	case d.step.forks():
		return d.arrive(ctx)
	}
	return nil
}

// mayStop tells that nothing is in our hands: the rows say all that has happened.
func (d *drive) mayStop() bool {
	return d.steps == 0 || d.outcome.kind == arrived || d.outcome.kind == passed
}

// callOn makes the call that a commit began.
func (d *drive) callOn(ctx context.Context, next call) error {
	d.steps++
	d.makeCall(ctx, next)
	if ctx.Err() != nil && d.outcome.kind == failed {
		return ctx.Err() // the call was cut by our own stop; its next try will say so
	}
	return nil
}

// goTo lets the slice go on at a row: behind it where it has ended.
func (d *drive) goTo(to stand) {
	d.step, d.groups, d.scope.callInput = &to.row, to.groups, nil
	d.outcome = outcome{kind: arrived}
	if !to.row.State.Open() {
		d.outcome.kind = passed
	}
}

const commitTimeout = 30 * time.Second

// decideAndCommit decides and writes that down. Where what it begins cannot begin,
// because the money does not fit under a cap or the review can ask nobody, it decides
// again with that known, and writes that.
func (d *drive) decideAndCommit(ctx context.Context) (decision, error) {
	first, err := d.decide(ctx, bars{})
	if err != nil {
		return first, err
	}
	err = d.write(ctx, first)
	barred, ok := barsFrom(err, first)
	if !ok {
		return first, err
	}
	second, err := d.decide(ctx, barred)
	if err != nil {
		return second, err
	}
	return second, d.write(ctx, second)
}

// barsFrom reads from a failed commit which step cannot begin, and why.
func barsFrom(err error, decided decision) (bars, bool) {
	if capped, ok := ledger.AsCapReached(err); ok {
		return barOf(capped, decided.next.node.ID()), true
	}
	var refused *refusedStep
	if errors.As(err, &refused) {
		return bars{failed: map[string]Failure{refused.stepID: refused.failure}}, true
	}
	failure := Failure{Class: ClassNobody, Message: "Nobody may decide this review: the people it asks are not members, or only the person who started the run. Somebody else who may decide must join the workspace."}
	switch {
	case errors.Is(err, review.ErrNobodyToAsk):
	case errors.Is(err, review.ErrBadQuestion):
		failure = Failure{Class: ClassBadReview, Message: "The question cannot be asked as it is. Correct the step's people, facts or texts.", Detail: err.Error()}
	default:
		return bars{}, false
	}
	return bars{failed: map[string]Failure{asked(decided): failure}}, true
}

// asked is the step whose review a decision opens.
func asked(decision decision) string {
	for _, entry := range decision.changes {
		if open, ok := entry.(openReview); ok {
			return open.draft.bar()
		}
	}
	return ""
}

// tryWrite commits the changes. A guard fails also where somebody else changed the row at
// the same moment, if only its cost; so who loses a race looks at the newest version once
// more before he believes it.
func (d *drive) tryWrite(ctx context.Context, decision decision) error {
	err := d.writeOnce(ctx, decision)
	if tenants.IsLostRace(err) {
		err = d.writeOnce(ctx, decision)
	}
	return err
}

// writeOnce commits the changes, with the slice's end where it does not go on. Its job
// needs no word here: run again, it would find nothing. What may have to wait for others,
// as an event's wait does, is committed in a transaction of its own.
func (d *drive) writeOnce(ctx context.Context, decision decision) error {
	c := &commitment{
		tenant: d.tenant, run: d.run.ID, state: d.run.State, slice: d.slice.id, fence: d.slice.fence,
		worker: d.worker.ID, changes: decision.changes, semantics: d.slice.semantics, priority: d.slice.priority,
		leaves: decision.next == nil && decision.stand == nil && !decision.yields,
	}
	if !decision.yields && !decision.awaitsEvent() && !c.asks() {
		return d.worker.commits.do(d.tenant, c)
	}
	return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		if err := d.locksFirst(ctx, tx, decision.changes); err != nil {
			return err
		}
		batch := &tenants.Batch{ByKey: true}
		c.queue(batch)
		if err := tx.Send(ctx, batch); err != nil {
			return err
		}
		if err := d.reachOut(ctx, tx, decision.changes); err != nil {
			return err
		}
		if err := d.openReviews(ctx, tx, decision.changes); err != nil {
			return err
		}
		if decision.yields {
			return d.handOver(ctx, tx, d.slice.id, d.slice.fence, &d.step.ID)
		}
		return d.cancelBelow(ctx, tx, decision.changes)
	})
}

// asks tells that a commit has to look at rows before it can write all of it: at people,
// or at what lost calls left in the ledger.
func (c *commitment) asks() bool {
	return slices.ContainsFunc(c.changes, func(entry change) bool {
		if settle, ok := entry.(settle); ok {
			return settle.abandoned != nil
		}
		switch entry.(type) {
		case openReview, startChild, sendEvent:
			return true
		}
		return false
	}) || c.cancels()
}

// decide asks the pure rules, loading the values they turn out to need.
func (d *drive) decide(ctx context.Context, barred bars) (decision, error) {
	clear(d.scope.earlier) // there may be newer ones
	d.scope.keys, d.scope.prices = nil, d.prices.recent(d.tenant)
	for {
		result := decide(moment{
			program: d.program, run: d.run, step: d.step, groups: d.groups,
			slice: d.slice.id, window: d.slice.window, fence: d.slice.fence, block: d.block, outcome: d.outcome, scope: d.scope.clone(),
			bars: barred, yield: d.mustYield(), inputBound: d.InputBound, maxOutput: d.MaxOutput, callbacks: d.callback, now: d.now(), newID: tenants.NewID[StepRun],
		})
		if len(result.missing) == 0 {
			return result, nil
		}
		err := patiently(ctx, func() error { return d.load(ctx, result.missing) })
		if err != nil {
			return result, err
		}
	}
}

// mustYield tells that others should get their turn, or that the program stops: the
// slice ends behind the step that has just finished.
func (d *drive) mustYield() bool {
	if d.outcome.kind != done || d.steps == 0 {
		return false
	}
	return d.pausing() || d.worker.draining.Load() || d.othersWait()
}

// othersWait tells that the slice has had its share while others wait for its slot.
func (d *drive) othersWait() bool {
	return d.waiting.Load().giveWay(share{d.tenant, d.slice.window, d.steps, time.Since(d.began)})
}

// abandon gives the slice back, because we are stopped. What a cut call has
// cost is booked as its caller said.
func (d *drive) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := d.payAnyway(ctx); err != nil {
		return err
	}
	err := d.giveBack(ctx)
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// giveBack makes the slice ready for another slot where it stands, and the items that it
// has taken on free for others.
func (d *drive) giveBack(ctx context.Context) error {
	return patiently(ctx, func() error {
		return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
			if len(d.block) > 0 {
				if err := releaseBlock(ctx, tx, d.slice.id); err != nil {
					return err
				}
			}
			return d.handOver(ctx, tx, d.slice.id, d.slice.fence, nil)
		})
	})
}

// maxLostJoins bounds how often a slice looks again at a group that others ended.
const maxLostJoins = 5

// afterLostRace finds out why a guard failed. If the run was paused or resumed, it is
// decided again under its new state. If the slice was taken from us, or the run was ended
// by somebody, what a call has cost is booked all the same.
func (d *drive) afterLostRace(ctx context.Context, lost error) error {
	state, err := d.stateIfOurs(ctx)
	switch {
	case err != nil:
		return err
	case state == d.run.State && d.outcome.kind == arrived && d.lostJoin < maxLostJoins:
		d.lostJoin++
		return nil // another slice has joined the group meanwhile; look again
	case state == d.run.State:
		return fmt.Errorf("commit of a slice that is still ours: %w", lost)
	case state != "" && !state.Final():
		d.run.State = state
		return nil
	}
	if err := d.payAnyway(ctx); err != nil {
		return err
	}
	if state.Final() { // another branch ended the run while this one had nothing left to do
		return d.endLate(ctx)
	}
	return errStale
}

// endLate ends a slice that came too late to its group.
func (d *drive) endLate(ctx context.Context) error {
	err := patiently(ctx, func() error { return d.DB.InTx(ctx, d.tenant, d.dropSlice) })
	if err != nil {
		return err
	}
	return errEnded
}

// stateIfOurs is the state of the run; none where the slice is not ours any more.
func (d *drive) stateIfOurs(ctx context.Context) (RunState, error) {
	var state RunState
	err := patiently(ctx, func() error {
		return d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
			return tx.QueryRow(ctx, `SELECT coalesce((
				SELECT r.state FROM slices s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
				WHERE s.tenant_id = $1 AND s.id = $2 AND s.fence = $3), '')`, d.tenant, d.slice.id, d.slice.fence).Scan(&state)
		})
	})
	if err != nil {
		return "", fmt.Errorf("look at a slice: %w", err)
	}
	return state, nil
}

// payAnyway books the money of a call whose step can no longer be finished by us. Where
// whoever took over has booked an estimate, what the call did cost corrects it.
func (d *drive) payAnyway(ctx context.Context) error {
	if d.outcome.settle == nil || d.step == nil {
		return nil
	}
	batch := &tenants.Batch{}
	batch.Queue(`SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, d.tenant, d.step.ID)
	d.outcome.settle.queue(batch)
	queueCost(batch, d.tenant, d.step.ID)
	err := patiently(ctx, func() error { return d.DB.Send(ctx, d.tenant, batch) })
	if tenants.IsLostRace(err) {
		return patiently(ctx, func() error { return d.DB.InTx(ctx, d.tenant, d.correctLate) })
	}
	return err
}

// correctLate tells the ledger what a call did cost that was given up at an estimate.
func (d *drive) correctLate(ctx context.Context, tx tenants.Tx) error {
	batch := &tenants.Batch{}
	batch.Queue(`SELECT 1 FROM runs WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`, d.tenant, d.run.ID)
	batch.Queue(`SELECT 1 FROM step_runs WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, d.tenant, d.step.ID)
	if err := tx.Send(ctx, batch); err != nil {
		return err
	}
	late := ledger.Settlement{Hold: d.outcome.settle.release} // no work was done, so nothing is owed
	if known := d.outcome.settle.settlement; known != nil {
		late = *known
	}
	corrected, err := ledger.CorrectEstimate(ctx, tx, late, "The answer came after the call had been given up.")
	if err != nil || !corrected {
		return err
	}
	cost := &tenants.Batch{}
	queueCost(cost, d.tenant, d.step.ID)
	return tx.Send(ctx, cost)
}
