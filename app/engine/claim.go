package engine

import (
	"context"
	"fmt"
	"slices"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// claim is a job that wants its slice, and what the claim reads of it.
type claim struct {
	DriveSlice
	job    int64
	worker WorkerID

	taken bool // the slice is ours; otherwise the job is outdated
	slice slice
	run   Run
	input given                 // of the run
	woken woken                 // by the wait that set it going
	rows  map[StepRunID]StepRun // where it may stand, the groups around, and its items; shared with other claims
}

// given is a value as far as claims read it: a large one is only known by its size.
type given struct {
	size    int // -1 where it is missing
	content []byte
}

// carried is the largest value that comes with a claim.
const carried = 64 << 10

func (g given) whole() bool { return len(g.content) == g.size }

// position is where the slice stands, nil at the run's beginning. An open step run that
// belongs to the slice is the position even if the slice's row still names an earlier one.
func (c *claim) position() *StepRun {
	for _, row := range c.rows {
		if row.Slice == c.slice.id && (row.State == StepRunning || row.State == StepWaiting) {
			return &row
		}
	}
	if row, ok := c.rows[c.slice.step]; ok {
		return &row
	}
	return nil
}

// around are the groups from parent outwards.
func (c *claim) around(parent StepRunID) []StepRun {
	var found []StepRun
	for !parent.IsZero() {
		group, ok := c.rows[parent]
		if !ok {
			break
		}
		found = append(found, group)
		parent = group.Parent
	}
	return found
}

// block are the items that the slice has taken on and not begun.
func (c *claim) block() []StepRun {
	var items []StepRun
	for _, row := range c.rows {
		if row.Slice == c.slice.id && row.State == StepQueued && row.Kind == KindItem {
			items = append(items, row)
		}
	}
	slices.SortFunc(items, func(x, y StepRun) int { return x.Turn - y.Turn })
	return items
}

// comesWith tells what came out where the slice stands, if the claim has read all that
// goes on from there. Behind a group or a part of one it takes a look whether others have
// gone on already; a call that was interrupted takes its input.
func (c *claim) comesWith(at *StepRun) (outcome, bool) {
	switch {
	case !c.input.whole():
		return outcome{}, false
	case at == nil:
		return outcome{kind: entered}, true
	case at.State == StepRunning && slices.Contains(groups, string(at.Kind)):
		return outcome{kind: arrived}, true
	case at.State == StepWaiting:
		return c.woken.ends(at)
	}
	return outcome{kind: passed}, !at.State.Open() && !forks(at.Kind) && !IsPart(at.Kind)
}

// claim takes the slice and reads where it stands. Where that is all it takes to go on, as
// at a run's beginning, behind a wait, or at a list, it is one round trip, which claims
// that come together share. A slice that comes too late to its group goes to the list
// around, or ends.
func (d *drive) claim(ctx context.Context, args DriveSlice) error {
	mine := &claim{DriveSlice: args, job: d.job.ID(), worker: d.worker.ID}
	if err := d.worker.claims.do(d.tenant, mine); err != nil {
		return fmt.Errorf("claim a slice: %w", err)
	}
	if !mine.taken {
		return errStale
	}
	d.slice, d.run, d.step = mine.slice, mine.run, mine.position()
	version, known := pipeline.KnownVersion(d.tenant, d.run.PipelineID, d.run.Version)
	came, whole := mine.comesWith(d.step)
	if !whole || !known || !d.run.Origin.IsZero() {
		return d.readOn(ctx, mine.input)
	}
	d.outcome = came
	if d.step != nil {
		d.groups = mine.around(d.step.Parent)
		d.block = mine.block()
	}
	return d.understand(version.Program, mine.input.content)
}

// readOn reads what the claim could not know that it needs.
func (d *drive) readOn(ctx context.Context, input given) error {
	found := stays
	err := d.DB.InTx(ctx, d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		if err := d.loadProgram(ctx, tx, input); err != nil {
			return err
		}
		silent, err := suppressedIn(ctx, tx, d.run)
		if err != nil {
			return err
		}
		d.scope.silent = silent
		if err := d.loadPosition(ctx, tx); err != nil {
			return err
		}
		late, err := d.late(ctx, tx)
		if found = stays; late && err == nil {
			found, err = d.leaveLate(ctx, tx)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case found == leaves:
		return errEnded
	case found == movesUp:
		d.moveUp()
	}
	return nil
}
