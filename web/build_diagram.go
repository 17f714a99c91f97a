package web

import (
	"fmt"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// Sizes of the diagram, in its own units.
const (
	boxWidth, boxHeight = 100, 32
	boxGap, columnGap   = 16, 12
	wayHeight           = 26

	boxLetters  = 12
	mostBoxes   = 60 // beyond it the outline tells more
	widestSheet = 460
)

// diagram draws the draft from top to bottom; ok is false where it would be too large to
// be read.
func (d *draftView) diagram() (ui.Diagram, bool) {
	roots := d.Sketch.Roots()
	boxes := 0
	d.each(func(*pipeline.Node) { boxes++ })
	wide := listWidth(roots)
	if boxes == 0 || boxes > mostBoxes || wide > widestSheet {
		return ui.Diagram{}, false
	}
	g := drawing{here: d.Here}
	bottom := g.list(roots, wide/2+8, 4)
	g.Width, g.Height = wide+16, bottom+4
	g.Label = "Diagram of " + d.Draft.Name + ", " + ui.Plural(int64(boxes), "step", "steps") + ". The outline says the same."
	return g.Diagram, true
}

type drawing struct {
	ui.Diagram
	here string
}

func (g *drawing) line(format string, args ...any) {
	g.Lines = append(g.Lines, fmt.Sprintf(format, args...))
}

// besides tells a step whose lists are drawn beside each other.
func besides(node *pipeline.Node) bool {
	return node.Kind() == pipeline.KindBranch || node.Kind() == pipeline.KindParallel
}

// drawnLists are a step's lists but for those that run only if it fails.
func drawnLists(node *pipeline.Node) []pipeline.ChildList {
	var out []pipeline.ChildList
	for _, list := range node.Lists {
		if !list.Key.HandlesError() {
			out = append(out, list)
		}
	}
	return out
}

func listWidth(nodes []*pipeline.Node) int {
	wide := boxWidth
	for _, node := range nodes {
		wide = max(wide, nodeWidth(node))
	}
	return wide
}

func nodeWidth(node *pipeline.Node) int {
	lists := drawnLists(node)
	if len(lists) == 0 {
		return boxWidth
	}
	sum := 0
	for _, list := range lists {
		sum += listWidth(list.Nodes) + columnGap
	}
	if !besides(node) {
		return sum + columnGap // room for the way back, at both sides
	}
	return sum - columnGap
}

// list draws steps one under the other around x, from y on, and gives where they end.
func (g *drawing) list(nodes []*pipeline.Node, x, y int) int {
	for i, node := range nodes {
		if i > 0 {
			g.line("M%d %dv%d", x, y, boxGap)
			y += boxGap
		}
		y = g.node(node, x, y)
	}
	return y
}

func (g *drawing) node(node *pipeline.Node, x, y int) int {
	g.Boxes = append(g.Boxes, ui.DiagramBox{
		X: x - boxWidth/2, Y: y, Width: boxWidth, Height: boxHeight, Text: firstOf(node.Number+" "+node.Step.Name, boxLetters),
		Round: node.Kind() == pipeline.KindBranch, Twice: node.Kind() == pipeline.KindEach, Here: node.ID() == g.here,
		Person: node.Kind() == pipeline.KindReview, Off: node.IsOff(),
	})
	y += boxHeight
	lists := drawnLists(node)
	switch {
	case len(lists) == 0:
		return y
	case besides(node):
		return g.columns(node, lists, x, y)
	}
	return g.loop(node, lists[0], x, y)
}

// columns draws the ways of a step beside each other and joins them.
func (g *drawing) columns(node *pipeline.Node, lists []pipeline.ChildList, x, y int) int {
	left := x - nodeWidth(node)/2
	top, bottom := y+boxGap/2, y
	var centres, ends []int
	for _, list := range lists {
		wide := listWidth(list.Nodes)
		centre := left + wide/2
		g.line("M%d %dV%dH%dv4", x, y, top, centre)
		g.line("M%d %dV%d", centre, top+20, top+wayHeight)
		g.Ways = append(g.Ways, ui.DiagramWay{X: centre, Y: top + 16, Text: firstOf(list.Name, boxLetters)})
		end := g.list(list.Nodes, centre, top+wayHeight)
		centres, ends, bottom = append(centres, centre), append(ends, end), max(bottom, end)
		left += wide + columnGap
	}
	join := bottom + boxGap/2
	for i, centre := range centres {
		g.line("M%d %dV%dH%d", centre, ends[i], join, x)
	}
	return join
}

// loop draws the steps of a round or an item under their step; rounds lead back to it.
func (g *drawing) loop(node *pipeline.Node, list pipeline.ChildList, x, y int) int {
	if len(list.Nodes) == 0 {
		return y
	}
	g.line("M%d %dv%d", x, y, boxGap)
	end := g.list(list.Nodes, x, y+boxGap)
	if node.Kind() != pipeline.KindRepeat {
		return end
	}
	edge := x + nodeWidth(node)/2 - 2
	g.line("M%d %dv6H%dV%dH%d", x, end, edge, y-boxHeight/2, x+boxWidth/2)
	g.line("M%d %dl-6 4 6 4", x+boxWidth/2+6, y-boxHeight/2-4)
	return end + 6
}
