package web

import (
	"net/url"
	"slices"
	"strconv"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// rerunMeans says which steps are taken over and which run again.
func (v *visit) rerunMeans(plan engine.RerunPlan) []ui.Row {
	var rows []ui.Row
	if len(plan.Reused) > 0 {
		var names, changed []string
		for _, reused := range plan.Reused {
			names = append(names, "“"+reused.Node.Step.Name+"”")
			if reused.Changed {
				changed = append(changed, "“"+reused.Node.Step.Name+"”")
			}
		}
		rows = append(rows, line(ui.Strong("Taken over"), ui.Plain(" and not done again: "), ui.Name(fewOf(names)), ui.Plain(".")))
		if len(changed) > 0 {
			rows = append(rows, line(ui.Name(fewOf(changed)), ui.Plain(" has other settings in this version. What it gave under the old ones is taken over all the same.")))
		}
	}
	for _, around := range plan.Kept {
		rows = append(rows, line(ui.Plain("The run stays in the case of “"), ui.Name(around.Node.Step.Name), ui.Plain("” that the original took, whatever its conditions would say now.")))
	}
	var again []string
	for _, node := range plan.Again {
		again = append(again, "“"+node.Step.Name+"”")
	}
	return append(rows, line(ui.Strong("Done again"), ui.Plain(": "), ui.Name(fewOf(again)), ui.Plain(".")))
}

// fewOf lists names, and counts those that are too many to list.
func fewOf(names []string) string {
	const most = 8
	if len(names) > most {
		names = append(slices.Clone(names[:most-1]), ui.Plural(int64(len(names)-most+1), "other", "others"))
	}
	return ui.List(names)
}

// rerunMoney says what is saved and what it will cost, and from what that is known.
func (v *visit) rerunMoney(plan engine.RerunPlan) []ui.Row {
	if !v.maySeeMoney() {
		return nil
	}
	words := "Saves " + ui.Dollars(plan.SavedMicros) + " and will cost about " + ui.Dollars(plan.AboutMicros) + ", by what the same steps cost in the original."
	if len(plan.Unknown) > 0 {
		words += " " + ui.Plural(int64(len(plan.Unknown)), "step that it never came to is", "steps that it never came to are") + " not in that."
	}
	if preview := plan.Version.Document.RunCap; preview != nil {
		words += " At most " + ui.Dollars(*preview) + ", the cap of a run."
	}
	return []ui.Row{line(ui.Plain(words))}
}

// versionRow says which version runs, and offers the other.
func (v *visit) versionRow(plan engine.RerunPlan, request engine.RerunRequest) ui.Row {
	here := v.path("runs", plan.Run.ID.String(), "rerun", plan.From.ID())
	if request.Newest {
		return line(ui.Plain("It runs by v"+strconv.Itoa(plan.Version.Number)+", the newest version. "),
			ui.LinkTo("Use v"+strconv.Itoa(plan.Run.Version)+", as the original", here), ui.Plain("."))
	}
	return line(ui.Plain("It runs by v"+strconv.Itoa(plan.Version.Number)+", as the original did. "),
		ui.LinkTo("Use the newest version", here+"?"+url.Values{versionName: {newestValue}}.Encode()), ui.Plain("."))
}

// silentPicks list what would go out a second time, each with "do not send again".
func (v *visit) silentPicks(plan engine.RerunPlan, request engine.RerunRequest) []ui.Picks {
	if len(plan.Twice) == 0 {
		return nil
	}
	picks := ui.Picks{Name: silentName, Label: "Do not send again",
		Help: "The original has sent these. What is ticked is left out this time, with what it gave then; what is not goes out a second time."}
	chosen := !v.reads()
	for _, twice := range plan.Twice {
		picks.Options = append(picks.Options, ui.Pick{
			Value: twice.Node.ID(), Label: twice.Node.Step.Name, Help: sentWords(twice),
			On: !chosen || slices.Contains(request.Suppress, twice.Node.ID()),
		})
	}
	return []ui.Picks{picks}
}

// sentWords say what a step has sent.
func sentWords(twice engine.Twice) string {
	one, many := "message", "messages"
	switch twice.Node.Kind() {
	case pipeline.KindEmail:
		one, many = "e-mail", "e-mails"
	case pipeline.KindHTTP:
		one, many = "request that changes something elsewhere", "requests that change something elsewhere"
	case pipeline.KindEmit:
		one, many = "event", "events"
	case pipeline.KindChild:
		one, many = "run of another pipeline", "runs of another pipeline"
	}
	return ui.Plural(int64(twice.Times), one, many) + " sent"
}
