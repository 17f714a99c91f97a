package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// firstSlices is how many slices a list begins with at most. They set others going as
// long as there are slots for them, so that none is made that never gets one.
const firstSlices = 16

// beginEach begins a list: a queued row for every item, and slices to take them on. No
// items give no results.
func (d *decider) beginEach(node *pipeline.Node, group *frame) error {
	list := node.Each()
	if err := d.see(at(node, group), list.Items.Refs()); err != nil {
		return err
	}
	values, failure := d.itemValues(list.Items)
	if failure != nil {
		return d.failBegin(node, group, *failure)
	}
	if len(values) == 0 {
		return d.pass(node, group, []byte(`{"failed":[],"results":[]}`))
	}
	row := d.newRow(node, group, StepRunning)
	row.AtOnce = list.AtOnce
	all := d.openGroup(row, group)
	d.add(insertItems{group: all.row, ids: d.newIDs(len(values)), values: values})
	for range min(list.AtOnce, len(values), firstSlices) - 1 {
		d.fork(all.row.ID, all.row.ID)
	}
	d.arriveAt(all)
	return nil
}

func (d *decider) newIDs(n int) []StepRunID {
	ids := make([]StepRunID, n)
	for i := range ids {
		ids[i] = d.newID()
	}
	return ids
}

// fork sets another slice going at a row.
func (d *decider) fork(row, window StepRunID) {
	d.add(fork{slice: SliceID(d.newID()), at: row, window: window})
}

// itemValues are the entries of the list that a formula gives.
func (d *decider) itemValues(formula *expr.Formula) ([][]byte, *Failure) {
	result, err := formula.Eval(context.Background(), d.vars)
	if err != nil {
		failure := formulaFailure(err)
		return nil, &failure
	}
	items, ok := result.([]any)
	if !ok {
		return nil, &Failure{Class: ClassFormula, Message: "The items are not a list. Choose a value that is one; a list without entries is fine."}
	}
	if len(items) > pipeline.MaxItems {
		return nil, &Failure{Class: ClassTooLarge, Message: fmt.Sprintf(
			"The list has %d items, and a step can go through at most %d. Split the list, or do it in several runs.", len(items), pipeline.MaxItems)}
	}
	values, size := make([][]byte, len(items)), 0
	for i, item := range items {
		encoded, err := expr.EncodeJSON(item)
		if size += len(encoded); err != nil || size > MaxValue {
			return nil, &Failure{Class: ClassTooLarge, Message: "The items are larger than 32 MiB together. Go through less data, or hand on where it can be found."}
		}
		values[i] = encoded
	}
	return values, nil
}

// endItem ends an item with what it gave, and takes on the next.
func (d *decider) endItem(item *frame) error {
	node := d.program.Node(item.row.StepID)
	output, failure, err := d.result(item, node.Each().Result)
	if err != nil {
		return err
	}
	if failure != nil {
		return d.failGroups(item, *failure)
	}
	d.close(item, StepDone, output, nil)
	if len(d.block) == 0 || len(d.changes) >= maxChanges {
		d.arriveAt(item.outer)
		return nil
	}
	return d.beginItem(node, item.outer)
}

// beginItem begins the next of the items that the slice has taken on.
func (d *decider) beginItem(node *pipeline.Node, list *frame) error {
	row := d.block[0]
	d.block = d.block[1:]
	row.State = StepRunning
	d.add(beginItem{id: row.ID})
	return d.begin(node.Each().Steps, 0, &frame{row: row, insert: -1, outer: list})
}

// arriveAtList goes on at a list: with an item that was taken on, or by joining the
// results once all items have ended. Too many failures end it before.
func (d *decider) arriveAtList(all *frame) error {
	node := d.program.Node(all.row.StepID)
	list := node.Each()
	if lost := d.outcome.lost; lost.count > list.MaxFailed {
		return d.failGroups(all, lost.failure(list.MaxFailed))
	}
	if len(d.block) > 0 {
		return d.beginItem(node, all)
	}
	items, ok := d.scope.turns[all.row.ID]
	if !ok {
		return d.ask(want{kind: wantTurns, row: all.row.ID})
	}
	output, failure := itemResults(items)
	if failure != nil {
		return d.failGroups(all, *failure)
	}
	d.close(all, StepDone, value{bytes: output}, nil)
	d.add(endWindow{all.row.ID})
	return d.after(node, all.outer)
}

// lostItems are the items of a list that failed.
type lostItems struct {
	count int      // at most one more than may
	first int      // the first of them, from 0
	why   *Failure // of the first
}

// failure is that of the list, where it may lose fewer.
func (l lostItems) failure(may int) Failure {
	failure := Failure{Class: ClassInternal}
	if l.why != nil {
		failure = *l.why
	}
	words := "Item %[1]d failed: %[2]s"
	if may > 0 {
		words = "More items failed than the %[3]d that may. The first was item %[1]d: %[2]s"
	}
	failure.Message = fmt.Sprintf(words, l.first+1, failure.Message, may)
	return failure
}

// itemResults are the results in the order of the items, and which of them failed.
func itemResults(items []turn) ([]byte, *Failure) {
	failed, results := []byte(`{"failed":[`), []byte(`],"results":[`)
	lost := 0
	for i, item := range items {
		if i > 0 {
			results = append(results, ',')
		}
		results = append(results, orNull(item.output)...)
		if item.state == StepDone {
			continue
		}
		if lost++; lost > 1 {
			failed = append(failed, ',')
		}
		failed = append(failed, `{"index":`+strconv.Itoa(item.index)+`,"message":`...)
		failed = append(append(failed, jsonText(item.failure)...), '}')
	}
	return bounded(append(append(failed, results...), `]}`...))
}

// orNull is an output, or null where there is none.
func orNull(output []byte) []byte {
	if output == nil {
		return []byte("null")
	}
	return output
}

// jsonText is what a failure says, as JSON.
func jsonText(failure *Failure) []byte {
	if failure == nil {
		return []byte(`""`)
	}
	encoded, err := json.Marshal(failure.Message)
	if err != nil { // a text cannot fail
		return []byte(`""`)
	}
	return encoded
}
