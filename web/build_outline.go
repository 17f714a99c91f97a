package web

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// treeSteps are the outline's links. Steps can be added behind the one that is edited, and
// at the end of each list.
func (d *draftView) treeSteps(nodes []*pipeline.Node) []ui.TreeStep {
	var out []ui.TreeStep
	for _, node := range nodes {
		step := ui.TreeStep{
			Number: node.Number, Name: node.Step.Name, Kind: ui.KindOf(string(node.Kind())), Href: d.stepPath(node.ID()),
			Here: node.ID() == d.Here, Off: node.Step.Off,
		}
		step.Flag, step.FlagWords = d.flagOf(node.ID())
		for _, list := range node.Lists {
			step.Lists = append(step.Lists, ui.TreeList{
				Title: listTitle(node, list), Steps: d.treeSteps(list.Nodes),
				Add: d.adds("Add step", pipeline.Place{Parent: node.ID(), List: list.Key, Index: len(list.Nodes)}, false),
			})
		}
		if step.Here && node.Next() != nil {
			step.Add = d.adds("Add step here", pipeline.Place{Parent: parentOf(node), List: node.List, Index: node.Index + 1}, true)
		}
		out = append(out, step)
	}
	return out
}

func parentOf(node *pipeline.Node) string {
	if node.Parent == nil {
		return ""
	}
	return node.Parent.ID()
}

// adds is nil for who may not build.
func (d *draftView) adds(text string, at pipeline.Place, here bool) *ui.TreeAdd {
	if !d.mayBuild() {
		return nil
	}
	return &ui.TreeAdd{Text: text, Href: d.addPath(at), Here: here}
}

func (d *draftView) tree() ui.StepTree {
	tree := ui.StepTree{Steps: d.treeSteps(d.Sketch.Roots())}
	words := "Add step at the end"
	if len(tree.Steps) == 0 {
		words = "Add your first step"
	}
	if add := d.adds(words, pipeline.Place{Index: len(d.Sketch.Roots())}, len(tree.Steps) == 0); add != nil {
		tree.Adds = []ui.TreeAdd{*add}
	}
	return tree
}

// listTitle says when a list of steps runs; the condition itself is in the step's form.
func listTitle(node *pipeline.Node, list pipeline.ChildList) string {
	switch {
	case list.Key.HandlesError():
		return "If it fails"
	case node.Kind() == pipeline.KindRepeat || node.Kind() == pipeline.KindEach:
		return ""
	}
	return list.Name
}

// flagOf is the worst that is wrong with a step.
func (d *draftView) flagOf(id string) (ui.Status, string) {
	blocks, warns := 0, 0
	for _, problem := range d.Problems {
		switch {
		case problem.Step != id:
		case problem.Severity == pipeline.Blocks:
			blocks++
		case problem.Severity == pipeline.Warning:
			warns++
		}
	}
	switch {
	case blocks > 0:
		return ui.Failed, ui.Plural(int64(blocks), "problem blocks", "problems block") + " publishing"
	case warns > 0:
		return ui.Stuck, ui.Plural(int64(warns), "warning", "warnings")
	}
	return "", ""
}

// bar says how the draft stands, and leads on.
func (d *draftView) bar() ui.DraftBar {
	bar := ui.DraftBar{Says: d.standing(), Links: []ui.Link{}}
	if d.Draft.Live > 0 && len(d.Changes) > 0 {
		bar.Links = append(bar.Links, ui.Link{Text: "See changes", Href: d.path("changes")})
	}
	bar.Links = append(bar.Links, ui.Link{Text: "As text", Href: d.path("text")})
	if blocking := len(pipeline.Blocking(d.Problems)); blocking > 0 {
		bar.Flag = &ui.Link{Text: ui.Plural(int64(blocking), "problem", "problems") + " to fix first", Href: d.firstProblem()}
	}
	if !d.mayBuild() {
		return bar
	}
	seen := []ui.Hidden{{Name: "seen", Value: strconv.FormatInt(d.Draft.Revision, 10)}}
	if d.Draft.Undo != "" {
		bar.Actions = append(bar.Actions, ui.PostButton{Action: d.path("undo"), Hidden: seen,
			Button: ui.Button{Text: "Undo", About: d.Draft.Undo, Kind: ui.Quiet, Icon: ui.IconUndo, TestID: "undo"}})
	}
	if d.Draft.Redo != "" {
		bar.Actions = append(bar.Actions, ui.PostButton{Action: d.path("redo"), Hidden: seen,
			Button: ui.Button{Text: "Redo", About: d.Draft.Redo, Kind: ui.Quiet, Icon: ui.IconRedo, TestID: "redo"}})
	}
	return d.publishes(bar)
}

// publishes offers to publish where there is something to publish.
func (d *draftView) publishes(bar ui.DraftBar) ui.DraftBar {
	if d.v.route.Name != "draft.ask_publish" && d.v.route.Name != "draft.publish" && (d.Draft.Live == 0 || len(d.Changes) > 0) {
		bar.Actions = append(bar.Actions, ui.Button{Text: "Publish …", Kind: ui.Primary, Href: d.path("publish"), TestID: "to-publish"})
	}
	return bar
}

func (d *draftView) standing() ui.Sentence {
	says := ui.Sentence{ui.Strong("Draft")}
	switch {
	case d.Draft.Live == 0:
		says = append(says, ui.Plain(" · not published yet"))
	case len(d.Changes) == 0:
		says = append(says, ui.Plain(fmt.Sprintf(" · the same as v%d, which is live", d.Draft.Live)))
	default:
		says = append(says, ui.Plain(fmt.Sprintf(" · %s since v%d (live)", ui.Plural(int64(len(d.Changes)), "change", "changes"), d.Draft.Live)))
	}
	says = append(says, ui.Plain(" · saved "+inSentence(ui.WhenBrief(d.Draft.ChangedAt, d.v.now, d.v.zone()))))
	if d.Draft.ChangedBy != "" && d.Draft.ChangedBy != d.v.me.User.Name {
		says = append(says, ui.Plain(" by "), ui.Name(d.Draft.ChangedBy))
	}
	return says
}

// firstProblem leads to the first thing that keeps the draft from being published.
func (d *draftView) firstProblem() string {
	for _, problem := range pipeline.Blocking(d.Problems) {
		return d.problemPath(problem)
	}
	return d.path()
}

// problemPath is the place of a problem: the page of its step, at its field.
func (d *draftView) problemPath(problem pipeline.Problem) string {
	path := d.path()
	if d.Sketch.Node(problem.Step) != nil && problem.Step != "" {
		path = d.stepPath(problem.Step)
	}
	if problem.Field == "" {
		return path
	}
	return path + "#" + anchor(problem.Field)
}

// mostChecks bounds the list beside the outline.
const mostChecks = 8

// checkLines are all problems, what blocks first.
func (d *draftView) checkLines() []ui.CheckLine {
	var out []ui.CheckLine
	for _, severity := range []pipeline.Severity{pipeline.Blocks, pipeline.Warning, pipeline.Tip} {
		for _, problem := range d.Problems {
			if problem.Severity != severity {
				continue
			}
			text := ui.Sentence{ui.Strong(severityWords[severity]), ui.Plain(" "), ui.Name(d.readableProblem(problem.Message))}
			out = append(out, ui.CheckLine{Status: severityStatus(severity), Text: text, Fix: ui.Link{Text: "Fix", Href: d.problemPath(problem)}})
		}
	}
	return out
}

// fewChecks are as many as stand beside the outline, and how many more there are.
func (d *draftView) fewChecks() ([]ui.CheckLine, int) {
	all := d.checkLines()
	few := min(len(all), mostChecks)
	return all[:few], len(all) - few
}

var severityWords = map[pipeline.Severity]string{pipeline.Blocks: "Blocks publishing.", pipeline.Warning: "Warning.", pipeline.Tip: "Tip."}

// checksTitle counts what there is to fix.
func (d *draftView) checksTitle() string {
	var counts []string
	for _, one := range []struct {
		severity  pipeline.Severity
		one, many string
	}{{pipeline.Blocks, "problem", "problems"}, {pipeline.Warning, "warning", "warnings"}, {pipeline.Tip, "tip", "tips"}} {
		n := 0
		for _, problem := range d.Problems {
			if problem.Severity == one.severity {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, ui.Plural(int64(n), one.one, one.many))
		}
	}
	if len(counts) == 0 {
		return "Nothing to fix"
	}
	return strings.Join(counts, ", ")
}

var quotedPlace = regexp.MustCompile(`“((?:steps|input|item|run|error)\.[a-z0-9_.]+)”`)

// readableProblem shows the places in a check's sentence by their names.
func (d *draftView) readableProblem(sentence string) string {
	return quotedPlace.ReplaceAllStringFunc(sentence, func(found string) string {
		if name := d.Names.Of(strings.Trim(found, "“”")); name != "" {
			return "“" + name + "”"
		}
		return found
	})
}
