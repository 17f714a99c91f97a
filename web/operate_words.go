package web

import (
	"strings"

	"tollgate/app/engine"
	"tollgate/web/ui"
)

// stuckText explains one kind of stuck to whoever runs the installation: what was seen,
// what the watchdog does about it, and what a person should do.
type stuckText struct{ title, seen, mended, advice string }

// stuckTexts has every kind that the watchdog knows, which a test checks.
var stuckTexts = map[engine.StuckKind]stuckText{
	engine.StuckJobGone: {
		title:  "The job of a branch was gone",
		seen:   "A branch of a run had its slot, but River had no live job for it, so no worker would have fetched it.",
		mended: "The branch got a new job. Nothing was done twice: a job that turns up late finds itself outdated.",
		advice: "Once after Postgres was restored or restarted is harmless. If it comes back, look for something that deletes from river.river_job.",
	},
	engine.StuckUndriven: {
		title:  "A worker held a branch and did not drive it",
		seen:   "By the database the branch was this worker’s, by the worker itself it was not.",
		mended: "The branch was handed to a new job under the next fence.",
		advice: "Once after the database was away is harmless. If it comes back, send us the worker’s log of the minute before.",
	},
	engine.StuckNoSlice: {
		title:  "A step counted as running, and nothing carried it",
		seen:   "The step’s row says running, but no branch of the run stands there any more.",
		mended: "A new branch goes on at that step. A call whose answer was not recorded is made again under the same key.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckNoWait: {
		title:  "A step waited for nothing",
		seen:   "The step’s row says waiting, but no open wait would ever have woken it.",
		mended: "The wait for a review that is still open was opened again; any other step goes on at once.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckNoStep: {
		title:  "An open run had nothing left to do",
		seen:   "The run has not ended, but no step of it works or waits, and no branch would begin one.",
		mended: "A new branch goes on behind the last step that ended.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckNoWaker: {
		title:  "A wait that nothing would end",
		seen:   "A step waits for a time that was never set, or for a review that is over.",
		mended: "A wait without a time ends at once. An answer that did not reach its run is not made up.",
		advice: "This is a defect of ours. Send us the run’s number. Where a review is over, cancel the run and start it again.",
	},
	engine.StuckLostChild: {
		title:  "A step waited for a run that was over",
		seen:   "The run that a step had started has ended, and the step was not told.",
		mended: "The step was told how that run ended, and its own run went on.",
		advice: "This is a defect of ours. Send us the numbers of both runs and the log around the time.",
	},
	engine.StuckSlotLeaked: {
		title:  "A slot was taken, and nobody used it",
		seen:   "A branch counted as under way, though its run has ended, or its worker is one that nobody knows.",
		mended: "The slot is free again. A branch of an open run was handed to another worker.",
		advice: "Once after Postgres was restored is harmless. If it comes back, send us the run’s number and the log around the time.",
	},
	engine.StuckUnserved: {
		title:  "A branch was ready, and nobody gave it a slot",
		seen:   "A branch could go on and there was room for it, but it was passed over.",
		mended: "It was made ready anew and given a slot.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckLeftPaused: {
		title:  "A branch stayed paused when its run was resumed",
		seen:   "The run is running, and one of its branches still waits for the end of a pause.",
		mended: "The branch goes on.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckJobOrphaned: {
		title:  "A job counted as running, and its branch had moved on",
		seen:   "River’s table had a running job whose branch another job carries, or none.",
		mended: "The job was marked done. It could not have done anything any more.",
		advice: "Once after the database was away is harmless. If it comes back, send us the log around the time.",
	},
	engine.StuckLostJoin: {
		title:  "Everything inside had ended, and nothing went on behind it",
		seen:   "All items of a list, or all branches side by side, had ended, and the step around them had not.",
		mended: "A new branch joins them and goes on behind the step.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckLostPart: {
		title:  "A round, an item or a branch was open, and nothing in it",
		seen:   "What was in it had ended, or had not begun, and no branch of the run was left to go on.",
		mended: "A new branch goes on behind what had ended last.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
	engine.StuckLostItems: {
		title:  "Items of a list waited, and nobody would take them",
		seen:   "Items had not begun, and no branch of the run was left that could begin them.",
		mended: "A new branch goes on with the items.",
		advice: "This is a defect of ours. Send us the run’s number and the log around the time.",
	},
}

// stuckWords explain a kind; one that a newer release recorded is shown by its name.
func stuckWords(kind engine.StuckKind) stuckText {
	if text, ok := stuckTexts[kind]; ok {
		return text
	}
	return stuckText{title: sentenceCase(spaced(string(kind)))}
}

func stuckAnchor(kind engine.StuckKind) string {
	return "kind-" + strings.ReplaceAll(string(kind), "_", "-")
}

// stuckRows explain all kinds.
func stuckRows() []ui.Row {
	var rows []ui.Row
	for _, kind := range engine.StuckKinds() {
		text := stuckWords(kind)
		rows = append(rows, ui.Row{ID: stuckAnchor(kind), Name: text.title, Reason: ui.Sentence{
			ui.Plain(text.seen + " "), ui.Strong("Mended: "), ui.Plain(text.mended + " "), ui.Strong("What to do: "), ui.Plain(text.advice),
		}})
	}
	return rows
}
