package web

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// asking is a review as one person sees it, by the link she was mailed or as a
// signed-in member.
type asking struct {
	review.View
	viewer    review.Viewer
	workspace tenants.Tenant
	zone      *time.Location
	run       engine.Run
	inside    bool   // on a page of the workspace, where one sees names and the run
	readOnly  bool   // she only looks: it asks others
	action    string // where the form goes
	key       string // of the form of a link
	given     answer // what she typed, if it has to be shown again
	compared  bool   // she asked to see her changes
	faults    map[string]string
	notice    ui.Notice // on top, if it has words
}

// askingOf completes a view with what stands around the question. A view without content
// gets no more than the workspace.
func (v *visit) askingOf(view review.View, viewer review.Viewer) (asking, error) {
	a := asking{View: view, viewer: viewer, zone: time.UTC}
	err := v.s.DB.InTx(v.ctx(), view.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if a.workspace, err = tenants.TenantOf(ctx, tx); err != nil || view.Review.Digest == nil {
			return err
		}
		a.run, err = engine.RunByID(ctx, tx, view.Review.RunID)
		return err
	})
	name := a.workspace.Zone
	if own := view.Seat.Zone; own != "" {
		name = own
	}
	if zone, err := time.LoadLocation(name); err == nil {
		a.zone = zone
	}
	return a, err
}

func (a asking) editors() []editor { return editors(a.Review, a.zone) }

func (a asking) content() review.Content { return a.Review.Content }

// when is a moment as she reads it, in the middle of a sentence.
func (a asking) when(t time.Time) string { return inSentence(ui.When(t, a.Review.Now, a.zone)) }

// asks says who asks.
func (a asking) asks() string {
	whom := "you"
	if a.readOnly {
		whom = ui.List(a.names(nil))
	}
	if who := a.content().Requester; who != "" {
		return fmt.Sprintf("%s, %s, asks %s", who, a.workspace.Name, whom)
	}
	return fmt.Sprintf("The pipeline “%s” of %s asks %s", a.content().PipelineName, a.workspace.Name, whom)
}

// shortBody is how long a text may be to stand under the question instead of in a part
// of its own.
const shortBody = 240

func (a asking) bodyIsShort() bool {
	body := a.content().Body
	return utf8.RuneCountInString(body) <= shortBody && !strings.Contains(strings.TrimSpace(body), "\n")
}

func (a asking) lead() ui.Sentence {
	if body := a.content().Body; body != "" && a.bodyIsShort() {
		return ui.Sentence{ui.Name(body)}
	}
	return nil
}

func (a asking) deadline() *ui.Deadline {
	box := ui.Deadline{Label: "Decide when you are ready", When: "No deadline", Left: "The run waits until somebody answers."}
	if due := a.Review.DueAt; due != nil {
		box = ui.Deadline{When: ui.When(*due, a.Review.Now, a.zone), Left: ui.Until(*due, a.Review.Now) + "."}
	}
	if !a.readOnly {
		box.Left += " You can decide once."
	}
	return &box
}

func (a asking) facts() ui.Pairs {
	pairs := ui.Pairs{Roomy: true}
	for _, fact := range a.content().Facts {
		pairs.Items = append(pairs.Items, ui.Pair{Label: fact.Label, Value: cmp.Or(fact.Value, "–")})
	}
	return pairs
}

// values are the fields for reading only, without one that is the proposal itself.
func (a asking) values() ui.Pairs {
	pairs := ui.Pairs{Roomy: true}
	for _, field := range a.content().Editable {
		e := editor{field, 0, a.zone}
		switch {
		case e.kind() == ui.LongField && sameText(e.text(), a.content().Proposal.Text):
		case e.kind() == ui.LongField:
			pairs.Items = append(pairs.Items, ui.Pair{Label: e.title(), Part: ui.Said(e.text())})
		default:
			pairs.Items = append(pairs.Items, ui.Pair{Label: e.title(), Value: valueWords(field, a.Review.Now, a.zone)})
		}
	}
	return pairs
}

// fields are those she may change before she approves.
func (a asking) fields() []ui.Field {
	var fields []ui.Field
	if a.readOnly {
		return nil
	}
	for _, e := range a.editors() {
		fields = append(fields, e.input(a.given.Typed, a.faults[e.Name]))
	}
	return fields
}

// proposes tells whether there is anything to judge beside the facts.
func (a asking) proposes() bool {
	return a.content().Proposal.Text != "" || len(a.content().Editable) > 0
}

func (a asking) proposalTitle() string {
	switch proposal := a.content().Proposal; {
	case proposal.AI:
		return "What the AI proposes"
	case proposal.Text != "":
		return "What is proposed"
	case len(a.fields()) > 0:
		return "What you can change"
	}
	return "What goes with it"
}

// writtenBy labels the proposal with who wrote it.
func (a asking) writtenBy() templ.Component {
	switch proposal := a.content().Proposal; {
	case proposal.AI:
		return ui.ByAI{Model: modelName(proposal.By)}
	case proposal.By != "":
		return ui.Sentence{ui.Plain("Written by "), ui.Name(proposal.By)}
	}
	return nil
}

// writtenByWords is the same as a line of its own.
func (a asking) writtenByWords() templ.Component {
	if label := a.writtenBy(); label != nil {
		return label
	}
	return ui.Words("Proposed")
}

// proposal is the text to judge, unless the same text stands in a field below it, or in
// the comparison there.
func (a asking) proposal() string {
	text := a.content().Proposal.Text
	if a.readOnly {
		return text
	}
	for _, e := range a.editors() {
		typed, ok := a.given.Typed[e.Name]
		visible := a.compared || !ok || sameText(typed, e.shown())
		if visible && e.kind() == ui.LongField && sameText(e.shown(), text) {
			return ""
		}
	}
	return text
}

// comparison is her changes, as far as they can be read.
func (a asking) comparison() []ui.Pair {
	edits, _ := a.given.edits(a.editors()) // faults stand beside the fields
	return a.changes(edits)
}

// decision is the form part in which she answers.
func (a asking) decision() ui.Decision {
	labels := a.labels()
	needed := "needed for “" + labels.Reject + "”"
	if a.Review.SendBack {
		needed = "needed for “" + labels.SendBack + "” and “" + labels.Reject + "”"
	}
	return ui.Decision{
		Name: choiceField, Choices: a.choices(), Chosen: string(a.given.Verdict), Error: a.faults["verdict"], Button: "Decide",
		Comment: ui.Field{
			Kind: ui.LongField, Name: commentField, Label: "Comment", Needed: needed, Optional: true, Rows: 3,
			Value: a.given.Comment, Error: a.faults["comment"],
		},
	}
}

// labels are the words of the answers; what they mean is the same under any name.
func (a asking) labels() review.Labels {
	labels := a.content().Labels
	return review.Labels{
		Approve:  cmp.Or(labels.Approve, "Approve"),
		Reject:   cmp.Or(labels.Reject, "Reject"),
		SendBack: cmp.Or(labels.SendBack, "Request changes"),
	}
}

func (a asking) choices() []ui.Choice {
	labels, leads := a.labels(), a.content().Consequences
	verb := labels.Approve
	if edits, _ := a.given.edits(a.editors()); len(edits) > 0 && a.compared {
		verb += " with " + ui.Plural(int64(len(edits)), "change", "changes")
	}
	approve := cmp.Or(leads.Approve, "The run is told yes and goes on.")
	if rest := a.Review.Needed() - a.Review.Agreed() - 1; rest > 0 {
		approve = ui.Plural(int64(rest), "more person", "more people") + " must agree. Then: " + approve
	}
	choices := []ui.Choice{{Value: string(review.Approve), Label: labels.Approve, Explain: approve, Verb: verb}}
	if a.Review.SendBack {
		choices = append(choices, ui.Choice{
			Value: string(review.SendBack), Label: labels.SendBack, Verb: labels.SendBack,
			Explain: "It goes back to the pipeline with your comment, and comes again.",
		})
	}
	return append(choices, ui.Choice{
		Value: string(review.Reject), Label: labels.Reject, Verb: labels.Reject,
		Explain: cmp.Or(leads.Reject, "The run is told no, with your comment."),
	})
}

// hidden travels with the form: what she looked at, and that it is her browser.
func (a asking) hidden() []ui.Hidden {
	hidden := []ui.Hidden{{Name: digestField, Value: hex.EncodeToString(a.Review.Digest)}}
	if a.key != "" {
		hidden = append(hidden, ui.Hidden{Name: keyField, Value: a.key})
	}
	return hidden
}

// faultList is what stands in the summary, in the order of the form.
func (a asking) faultList() []ui.Fault {
	var faults []ui.Fault
	for _, field := range append(a.fields(), a.decision().Comment) {
		if field.Error != "" {
			faults = append(faults, ui.Fault{Anchor: field.Anchor(), Message: field.Error})
		}
	}
	if message := a.faults["verdict"]; message != "" {
		faults = append(faults, ui.Fault{Anchor: a.decision().Anchor(), Message: message})
	}
	return faults
}

// title is that of the document.
func (a asking) title() string {
	if len(a.faultList()) > 0 {
		return "Error: " + a.content().Title
	}
	return a.content().Title
}
