package web

import (
	"tollgate/app/engine"
	"tollgate/web/ui"
)

// means says how many runs it is about, and what becomes of them.
func (b bulkView) means() []ui.Row {
	rows := []ui.Row{line(ui.Strong(ui.Plural(int64(b.Plan.Runs), "run", "runs")), ui.Plain(" will be "+bulkDone(b.Action)+", one after the other, in the background. You can watch it and stop it."))}
	for _, one := range bulkWords {
		if one.action == b.Action {
			rows = append(rows, line(ui.Plain(one.means)))
		}
	}
	if b.Action == engine.BulkRerun && b.v.maySeeMoney() && b.Plan.CostMicros > 0 {
		rows = append(rows, line(ui.Plain("Together they will cost about "+ui.Dollars(b.Plan.CostMicros)+", by what they cost so far. Each stops where a cap has no room for it.")))
	}
	if b.Plan.More {
		rows = append(rows, line(ui.Plain("There are more: the oldest "+ui.Count(engine.MostInBulk)+" are taken. Do the rest afterwards.")))
	}
	return append(rows, line(ui.Plain("A run that it does not fit any more when its turn comes is passed over, with the reason. What is done to each is in its record, with your name.")))
}

// bulkDone is what the action makes of a run.
func bulkDone(action engine.BulkAction) string {
	for _, one := range bulkWords {
		if one.action == action {
			return one.done
		}
	}
	return string(action)
}

// causes narrow the filter to runs that failed for one reason.
func (b bulkView) causes() []ui.Row {
	var rows []ui.Row
	for _, cause := range b.Plan.Causes {
		row := ui.Row{Reason: ui.Sentence{ui.Name(cause.Message)}, End: ui.Count(int64(cause.Runs))}
		if b.Filter.Cause == "" && len(b.Plan.Causes) > 1 {
			row.Reason = append(row.Reason, ui.Plain(" "), ui.LinkTo("Only these", b.address("cause", cause.Message)))
		}
		rows = append(rows, row)
	}
	if b.Filter.Cause != "" {
		rows = append(rows, line(ui.LinkTo("All causes", b.address("cause", ""))))
	}
	return rows
}

// do is the button that begins it.
func (b bulkView) do() ui.Button {
	button := ui.Button{Kind: ui.Primary, TestID: "confirm-bulk"}
	if b.Action == engine.BulkCancel {
		button.Kind = ui.Danger
	}
	for _, one := range bulkWords {
		if one.action == b.Action {
			button.Text = one.offer + ": " + ui.Plural(int64(b.Plan.Runs), "run", "runs")
		}
	}
	return button
}
