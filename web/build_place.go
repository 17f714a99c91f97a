package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// kindTexts say what each kind of step is for, in the builder's words, with those that
// people search by.
var kindTexts = map[pipeline.Kind]string{
	pipeline.KindAI:       "Read, write, sort or judge something with a model, by your instructions.",
	pipeline.KindReview:   "Somebody approves or refuses, from the mail that reaches them.",
	pipeline.KindBranch:   "Go different ways, by conditions: if yes, otherwise.",
	pipeline.KindRepeat:   "Do steps again until the result is good, within limits.",
	pipeline.KindEach:     "The same steps for every entry of a list, many at a time.",
	pipeline.KindParallel: "Several branches at the same time; take all, the majority or the best.",
	pipeline.KindWait:     "For a span of time, or until a date.",
	pipeline.KindEvent:    "Until something happens elsewhere, such as a payment.",
	pipeline.KindHTTP:     "From or to another system, by its address (API).",
	pipeline.KindEmail:    "A mail to anybody, with data of the run.",
	pipeline.KindSet:      "Work out values: totals, texts, dates.",
	pipeline.KindChild:    "Another pipeline of this workspace, as one step.",
	pipeline.KindEmit:     "Tell other runs that something has happened.",
	pipeline.KindStop:     "End the run here, as done or with an exception.",
}

// addView asks what kind of step is to be added, and where.
type addView struct {
	d  *draftView
	At pipeline.Place
}

func placeSent(v *visit) pipeline.Place {
	index, err := strconv.Atoi(v.FormValue("place"))
	if err != nil {
		index = 0
	}
	return pipeline.Place{Parent: v.FormValue("in"), List: pipeline.ListKey(v.FormValue("list")), Index: index}
}

func (s *Server) addPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	return view.page(http.StatusOK, "Add a step", addBody(addView{d: view, At: placeSent(v)}))
}

// addStep puts a new step, prefilled, at a place and leads to its form.
func (s *Server) addStep(v *visit) error {
	at, kind := placeSent(v), pipeline.Kind(v.FormValue("kind"))
	model := ""
	if len(v.s.Models) > 0 {
		model = v.s.Models[0].ID
	}
	step, err := v.edit(func(d pipeline.Document) (pipeline.Document, string, string, error) {
		changed, id, err := d.WithStep(at, kind, model)
		return changed, "Added “" + kind.Title() + "”", id, err
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("pipelines", v.Param("pipeline"), "draft", "steps", step) + "?new=1")
}

// offers are the kinds of steps, as the list offers them.
func (a addView) offers() ui.KindList {
	list := ui.KindList{Action: a.d.path("add"), Hidden: []ui.Hidden{
		{Name: "key", Value: a.d.Key}, {Name: "in", Value: a.At.Parent}, {Name: "list", Value: string(a.At.List)}, {Name: "place", Value: strconv.Itoa(a.At.Index)},
	}}
	for _, kind := range pipeline.Kinds() {
		list.Items = append(list.Items, ui.KindOffer{Value: string(kind), Kind: ui.KindOf(string(kind)), Text: kindTexts[kind]})
	}
	return list
}

// where says behind what the new step comes.
func (a addView) where() ui.Sentence {
	nodes := a.d.Sketch.Roots()
	words := ui.Sentence{}
	if parent := a.d.Sketch.Node(a.At.Parent); parent != nil && a.At.Parent != "" {
		words = ui.Sentence{ui.Plain("Inside "), ui.Strong(parent.Step.Name)}
		for _, list := range parent.Lists {
			if list.Key == a.At.List {
				nodes = list.Nodes
				if title := listTitle(parent, list); title != "" {
					words = append(words, ui.Plain(" › "), ui.Name(title))
				}
			}
		}
		words = append(words, ui.Plain(", "))
	}
	switch i := min(a.At.Index, len(nodes)); {
	case len(nodes) == 0:
		words = append(words, ui.Plain("as the first step."))
	case i <= 0:
		words = append(words, ui.Plain("before "), ui.Strong(nodes[0].Step.Name), ui.Plain("."))
	default:
		words = append(words, ui.Plain("behind "), ui.Strong(nodes[i-1].Step.Name), ui.Plain("."))
	}
	words[0].Text = sentenceStart(words[0].Text)
	return words
}

// change makes one of the edits that need nothing but the step.
func (s *Server) change(says string, change func(pipeline.Document, string) (pipeline.Document, string, error)) handler {
	return func(v *visit) error {
		view, err := v.draftOf()
		if err != nil {
			return err
		}
		node, err := view.stepParam()
		if err != nil {
			return err
		}
		step, err := v.edit(func(d pipeline.Document) (pipeline.Document, string, string, error) {
			changed, id, err := change(d, node.ID())
			return changed, fmt.Sprintf(says, node.Step.Name), id, err
		})
		if err != nil {
			return err
		}
		if step == "" {
			return v.redirect(view.afterRemoval(node))
		}
		return v.backTo(step)
	}
}

// afterRemoval leads to the step before one that is gone, or behind it.
func (d *draftView) afterRemoval(node *pipeline.Node) string {
	switch {
	case node.Previous() != nil:
		return d.stepPath(node.Previous().ID())
	case node.Next() != nil:
		return d.stepPath(node.Next().ID())
	case node.Parent != nil:
		return d.stepPath(node.Parent.ID())
	}
	return d.path()
}

func nudge(up bool) func(pipeline.Document, string) (pipeline.Document, string, error) {
	return func(d pipeline.Document, id string) (pipeline.Document, string, error) {
		d, err := d.WithNudged(id, up)
		return d, id, err
	}
}

func turn(off bool) func(pipeline.Document, string) (pipeline.Document, string, error) {
	return func(d pipeline.Document, id string) (pipeline.Document, string, error) {
		d, err := d.WithSwitched(id, off)
		return d, id, err
	}
}

func remove(d pipeline.Document, id string) (pipeline.Document, string, error) {
	d, err := d.WithoutStep(id)
	return d, "", err
}

// moveStepView offers the places that a step can be moved to.
type moveStepView struct {
	d    *draftView
	Node *pipeline.Node
}

func (s *Server) moveStepPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	node, err := view.stepParam()
	if err != nil {
		return err
	}
	return view.page(http.StatusOK, "Move "+node.Step.Name, moveStepBody(moveStepView{view, node}))
}

// moveStep puts a step at the place that was chosen.
func (s *Server) moveStep(v *visit) error {
	move := func(d pipeline.Document, id string) (pipeline.Document, string, error) {
		parts := strings.SplitN(v.FormValue("to"), "/", 3)
		if len(parts) != 3 {
			return d, id, &pipeline.BadEdit{Reason: "Choose a place to move the step to."}
		}
		index, _ := strconv.Atoi(parts[2])
		d, err := d.WithMoved(id, pipeline.Place{Parent: parts[0], List: pipeline.ListKey(parts[1]), Index: index})
		return d, id, err
	}
	return s.change("Moved “%s”", move)(v)
}

// movePlace is one place to choose, or one that cannot be, with why.
type movePlace struct {
	Value, Text, Why string
	Depth            int
	Here             bool
}

// places are all places of the draft in reading order.
func (m moveStepView) places() []movePlace {
	var out []movePlace
	var walk func(parent string, list pipeline.ListKey, nodes []*pipeline.Node, depth int, inside bool)
	walk = func(parent string, list pipeline.ListKey, nodes []*pipeline.Node, depth int, inside bool) {
		add := func(index int, text string) {
			out = append(out, m.place(pipeline.Place{Parent: parent, List: list, Index: index}, text, depth, inside))
		}
		add(0, m.first(parent, list))
		for i, node := range nodes {
			for _, inner := range node.Lists {
				walk(node.ID(), inner.Key, inner.Nodes, depth+1, inside || node == m.Node)
			}
			if node != m.Node {
				add(i+1, "Behind "+node.Number+" “"+node.Step.Name+"”")
			}
		}
	}
	walk("", pipeline.ListRoot, m.d.Sketch.Roots(), 0, false)
	return slices.DeleteFunc(out, func(p movePlace) bool { return p.Here })
}

func (m moveStepView) first(parent string, key pipeline.ListKey) string {
	node := m.d.Sketch.Node(parent)
	if parent == "" || node == nil {
		return "At the beginning"
	}
	for _, list := range node.Lists {
		if title := listTitle(node, list); list.Key == key && title != "" {
			return "First in “" + node.Step.Name + "” › " + title
		}
	}
	return "First in “" + node.Step.Name + "”"
}

// place says of a place whether the step can be there. Where it is already is no place.
func (m moveStepView) place(at pipeline.Place, text string, depth int, inside bool) movePlace {
	place := movePlace{Value: at.Parent + "/" + string(at.List) + "/" + strconv.Itoa(at.Index), Text: text, Depth: depth}
	if inside {
		place.Why = "It is inside of this step."
		return place
	}
	place.Here = at.Parent == parentOf(m.Node) && at.List == m.Node.List && (at.Index == m.Node.Index || at.Index == m.Node.Index+1)
	if depth+m.Node.Step.Levels() > pipeline.MaxNesting {
		place.Why = fmt.Sprintf("Steps would sit more than %d deep there.", pipeline.MaxNesting)
	}
	return place
}

// place is where a step is.
func place(node *pipeline.Node) pipeline.Place {
	return pipeline.Place{Parent: parentOf(node), List: node.List, Index: node.Index}
}
