package web

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

// stepPage is the form of one step beside the outline.
func (s *Server) stepPage(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	node, err := view.stepParam()
	if err != nil {
		return err
	}
	form := view.form(node.ID(), nil)
	step := *node.Step
	form.describe(&step)
	return view.showStep(http.StatusOK, node, form, nil)
}

// stepFormView is a step's form as it is drawn.
type stepFormView struct {
	d    *draftView
	Node *pipeline.Node
	Form *stepForm
	// Differs are the settings in which what was typed differs from what somebody else has
	// saved meanwhile.
	Differs []pipeline.Change
	Seen    string // what the form is drawn for
}

func (d *draftView) showStep(status int, node *pipeline.Node, form *stepForm, differs []pipeline.Change) error {
	title := node.Step.Name
	if len(form.faults) > 0 || differs != nil {
		title = "Error: " + title
	}
	view := stepFormView{d: d, Node: node, Form: form, Differs: differs, Seen: digestOf(*node.Step)}
	return d.page(status, title, stepBody(view))
}

// digestOf tells whether a step is the one that a form was drawn for. The steps inside it
// do not count: they have forms of their own.
func digestOf(step pipeline.Step) string {
	sum := sha256.Sum256(pipeline.Document{Steps: []pipeline.Step{step.Alone()}}.JSON())
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// errStepMoved tells that somebody else saved the step since the form was drawn.
var errStepMoved = errors.New("the step was changed since")

// errFaulty tells that the form holds something that cannot be kept.
var errFaulty = errors.New("the form has faults")

// saveStep keeps what was typed into a step's form. Where somebody else changed that step
// meanwhile nothing is kept, and both are shown.
func (s *Server) saveStep(v *visit) error {
	view, err := v.draftOf()
	if err != nil {
		return err
	}
	node, err := view.stepParam()
	if err != nil {
		return err
	}
	sent, err := v.FormParams()
	if err != nil {
		return err
	}
	var form *stepForm
	id := node.ID()
	_, err = v.edit(func(d pipeline.Document) (pipeline.Document, string, string, error) {
		changed, err := d.WithChanged(id, func(step *pipeline.Step) error {
			form = view.form(id, cloneValues(sent))
			form.insertSent()
			if digestOf(*step) != v.FormValue("seen") {
				form.describe(step)
				return errStepMoved
			}
			if form.describe(step); len(form.faults) > 0 {
				return errFaulty
			}
			return nil
		})
		return changed, saysOf(d, changed, node.Step.Name), id, err
	})
	switch {
	case errors.Is(err, errFaulty):
		v.saved = false
		return view.showStep(http.StatusUnprocessableEntity, node, form, nil)
	case errors.Is(err, errStepMoved):
		v.saved = false
		return view.showConflict(node, form)
	case err != nil:
		return err
	}
	return v.redirect(view.afterSave(id, v.FormValue("do"), v.FormValue("next")))
}

func cloneValues(sent url.Values) url.Values {
	out := url.Values{}
	for name, values := range sent {
		out[name] = append([]string(nil), values...)
	}
	return out
}

// saysOf is what an edit of one step did, for the history of the draft.
func saysOf(before, after pipeline.Document, name string) string {
	changes := pipeline.Changes(before, after)
	switch len(changes) {
	case 0:
		return "Changed “" + name + "”"
	case 1:
		return changes[0].Says
	}
	return changes[0].Says + " And " + ui.Plural(int64(len(changes)-1), "more change", "more changes")
}

// showConflict shows what was typed in the form again, and in what it differs from the step
// as somebody else has saved it.
func (d *draftView) showConflict(node *pipeline.Node, form *stepForm) error {
	mine, err := d.Draft.Draft.WithChanged(node.ID(), func(step *pipeline.Step) error {
		again := d.form(node.ID(), cloneValues(form.sent))
		again.describe(step)
		return nil
	})
	if err != nil {
		return err
	}
	differs := pipeline.Changes(d.Draft.Draft, mine)
	if differs == nil {
		differs = []pipeline.Change{} // both typed the same
	}
	return d.showStep(http.StatusConflict, node, form, differs)
}

// afterSave is where a saved form leads: on to the next step, or back to this one, with
// one more row where one was asked for.
func (d *draftView) afterSave(id, do, next string) string {
	path := d.stepPath(id)
	name, more := strings.CutPrefix(do, "more:")
	switch {
	case more:
		return path + "?" + url.Values{"more": {name}}.Encode() + "#" + anchor(name)
	case strings.HasPrefix(do, "insert:"):
		return path + "#" + anchor(strings.TrimPrefix(do, "insert:"))
	case strings.HasPrefix(do, "remove:"), strings.HasPrefix(do, "up:"):
		_, row, _ := strings.Cut(do, ":")
		return path + "#" + anchor(row[:strings.LastIndexByte(row+"[", '[')])
	case do == "next" && d.Sketch.Node(next) != nil:
		return d.stepPath(next)
	}
	return path
}

// over is the line above the form: which step of which kind, and inside what.
func (p stepFormView) over() ui.Sentence {
	kind := ui.KindOf(string(p.Node.Kind())).Words
	over := ui.Words("Step " + p.Node.Number + " · " + kind)
	if p.Node.IsOff() {
		over = ui.Words("Turned off · " + kind)
	}
	if p.Node.Parent == nil {
		return over
	}
	over = append(over, ui.Plain(" · inside "), ui.LinkTo(p.Node.Parent.Step.Name, p.d.stepPath(p.Node.Parent.ID())))
	for _, list := range p.Node.Parent.Lists {
		if title := listTitle(p.Node.Parent, list); list.Key == p.Node.List && title != "" {
			over = append(over, ui.Plain(" › "), ui.Name(title))
		}
	}
	return over
}

// next is the step behind this one in reading order; nil behind the last.
func (d *draftView) next(node *pipeline.Node) *pipeline.Node {
	found := false
	var next *pipeline.Node
	d.each(func(n *pipeline.Node) {
		if found && next == nil {
			next = n
		}
		found = found || n == node
	})
	return next
}

// each goes through the steps of the draft in reading order.
func (d *draftView) each(do func(*pipeline.Node)) {
	var walk func([]*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			do(node)
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(d.Sketch.Roots())
}

// leftOver are problems of the step that no field of the form shows.
func (p stepFormView) leftOver() []ui.CheckLine {
	var out []ui.CheckLine
	for _, problem := range p.d.Problems {
		if problem.Step != p.Node.ID() || p.Form.shows(problem.Field) || p.Form.quiet {
			continue
		}
		out = append(out, ui.CheckLine{Status: severityStatus(problem.Severity), Text: ui.Words(sentenceStart(problem.Says))})
	}
	return out
}

// shows tells whether a field of the form, or a list in it, has a problem's place.
func (f *stepForm) shows(field string) bool {
	for told := range f.told {
		if field == told || strings.HasPrefix(field, told+"[") {
			return true
		}
	}
	return false
}

// conflictWords say what happened to a form that came too late.
func (p stepFormView) conflictWords() ui.Sentence {
	by := p.d.Draft.ChangedBy
	if by == "" {
		by = "Somebody"
	}
	words := ui.Sentence{ui.Strong(fmt.Sprintf("%s saved this step while you were editing it.", by)),
		ui.Plain(" Nothing is lost: below is what you typed. ")}
	if len(p.Differs) == 0 {
		return append(words, ui.Plain("Both say the same."))
	}
	return append(words, ui.Plain("If you save it now, yours takes the place of theirs:"))
}
