package web

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// panelView is one step of a run, with all that came in and out of it.
type panelView struct {
	r       *runView
	Passage passage
	Input   *engine.Preview
	Output  *engine.Preview
	Charges []ledger.Charge
	Live    string      // what a model has written so far
	Calls   []triedCall // of a step that asks models
	Review  *review.Detail
	Mails   []mail.Mail          // that the step sends, or that ask its question
	Lineage *engine.Lineage      // nil where it was not asked for, or there is none
	Reused  *engine.ReusedOrigin // whose result was taken over
}

// readPanel reads the panel that was asked for, by the id of the step or of its
// execution; or that of the step that needs somebody.
func (r *runView) readPanel(ctx context.Context, tx tenants.Tx) error {
	p, found := r.chosen()
	switch {
	case !found && r.Chosen != "":
		return r.elsewhere(ctx, tx)
	case !found:
		return nil
	}
	panel := panelView{r: r, Passage: p}
	r.Panel = &panel
	if p.Step == nil {
		return nil
	}
	var err error
	if panel.Input, err = r.preview(ctx, tx, p.Step.Input); err != nil {
		return err
	}
	if panel.Output, err = r.preview(ctx, tx, p.Step.Output); err != nil {
		return err
	}
	if detail, ok := r.Reviews[p.Step.ID]; ok {
		panel.Review = &detail
	}
	if p.Step.Kind == pipeline.KindEmail || panel.Review != nil {
		if err := panel.readMails(ctx, tx); err != nil {
			return err
		}
	}
	if p.Step.Kind == pipeline.KindAI {
		if panel.Live, err = engine.LiveText(ctx, tx, p.Step.ID); err != nil {
			return err
		}
		if err := panel.readCalls(ctx, tx); err != nil {
			return err
		}
	}
	if p.Step.Kind == pipeline.KindAI && r.v.maySeeMoney() {
		if panel.Charges, err = ledger.ChargesOfStep(ctx, tx, ledger.StepRunID(p.Step.ID)); err != nil {
			return err
		}
		panel.Charges = slices.DeleteFunc(panel.Charges, func(c ledger.Charge) bool { return c.Kind == ledger.Test })
	}
	return panel.readOrigin(ctx, tx)
}

// readOrigin reads where the result comes from, on the page of the step.
func (p *panelView) readOrigin(ctx context.Context, tx tenants.Tx) error {
	var err error
	step := p.Passage.Step
	if from := step.ReusedFrom; !from.IsZero() {
		if p.Reused, err = engine.ReusedFrom(ctx, tx, from); err != nil {
			return err
		}
	}
	if p.r.Chosen == "" || step.State.Open() || step.Output.IsZero() {
		return nil
	}
	p.Lineage, err = p.r.v.s.Engine.LineageOf(ctx, tx, p.r.View.Run.ID, step.ID)
	return err
}

// chosen finds the step whose panel is shown. A page that asks for none opens the one
// that somebody has to look at: failed, waiting, or at work.
func (r *runView) chosen() (passage, bool) {
	wanted := r.Chosen
	if wanted == "" && !r.News.Fresh && r.News.Standing != engine.StandingCompleted {
		wanted = r.News.StepID
	}
	for _, p := range r.Passages {
		if wanted != "" && !p.isPart() && (p.Node.ID() == wanted || p.Step != nil && p.Step.ID.String() == wanted) {
			if r.Chosen != "" {
				r.Chosen = p.Node.ID()
			}
			return p, true
		}
	}
	return passage{}, false
}

// preview reads the beginning of a value of the run; nil where there is none.
func (r *runView) preview(ctx context.Context, tx tenants.Tx, digest engine.Digest) (*engine.Preview, error) {
	if digest.IsZero() {
		return nil, nil
	}
	preview, err := engine.PreviewOf(ctx, tx, r.View.Run.ID, digest, previewBytes)
	return &preview, err
}

func (p *panelView) node() *pipeline.Node { return p.Passage.Node }

// component is the panel as it stands beside the timeline.
func (p *panelView) component() *ui.Panel {
	badge := p.Passage.badge()
	panel := &ui.Panel{
		ID: "panel", Over: "Step " + p.node().Number + " · " + p.node().Kind().Title(), Title: p.node().Step.Name,
		Badge: &badge, Says: p.says(), Actions: p.actions(),
	}
	if p.r.Chosen != "" {
		panel.Close = p.r.base() + p.r.query()
	}
	for _, fold := range []ui.Fold{p.reviewFold(), p.deliveryFold(), p.callbackFold(), p.failureFold(), p.liveFold(), p.resultFold(), p.originFold(), p.inputFold(), p.triesFold(), p.moneyFold(), p.callsFold(), p.askFold()} {
		if fold.Title != "" {
			panel.Folds = append(panel.Folds, fold)
		}
	}
	return panel
}

// says tells what happened in a sentence or two.
func (p *panelView) says() ui.Sentence {
	step, c := p.Passage.Step, clock{p.r.Now, p.r.v.zone()}
	if step == nil {
		if p.Passage.Lost {
			return ui.Words("The run ended before it got here.")
		}
		return ui.Words("It has not begun yet.")
	}
	out := p.news(c)
	if p.Reused != nil {
		out = append(append(append(out, ui.Plain(" ")), p.r.reusedWords(*p.Reused)...), ui.Plain("."))
	}
	if step.Note != "" {
		out = append(out, ui.Plain(" "), ui.Name(sentenceEnd(sentenceCase(step.Note))))
	}
	out = behind(out, p.r.childSentence(p.Passage))
	if p.interrupted() {
		out = append(out, ui.Plain(" A try was cut off, so the call was made again with the same key."))
	}
	return out
}

// news is what became of the step, most telling first.
func (p *panelView) news(c clock) ui.Sentence {
	step := p.Passage.Step
	switch {
	case p.Passage.caught() && p.Passage.Wait != nil:
		return append(append(p.Passage.handledWords(), ui.Plain(" ")), p.askedWords(c)...)
	case p.Passage.caught():
		return p.Passage.handledWords()
	case step.State == engine.StepFailed && step.Failure != nil:
		return append(ui.Sentence{ui.Strong(step.Failure.Message)}, p.triedOften()...)
	case step.State == engine.StepCancelled:
		return append(ui.Words("Stopped "+c.when(*step.EndedAt)+", when the run was cancelled."), p.maybeArrived()...)
	case !step.ReusedFrom.IsZero() && p.Reused == nil:
		return ui.Words("Taken over from an earlier run. It was not done again and cost nothing here.")
	case p.Reused != nil:
		return ui.Words("Not done again, and cost nothing here.")
	case step.State == engine.StepSkipped:
		return ui.Words("Left out " + c.when(*step.EndedAt) + ", with the value below in place of its result.")
	case step.State == engine.StepDone:
		return p.doneWords(c)
	case p.Passage.Wait != nil && p.Passage.Wait.Kind == engine.WaitReview && p.node().HTTP() != nil:
		return p.unsureWords(c)
	case p.Passage.Wait != nil && p.Passage.Wait.Kind == engine.WaitReview:
		return p.askedWords(c)
	case p.Passage.Wait != nil:
		return p.waitWords(c)
	case step.State == engine.StepWaiting:
		return ui.Words("What it waited for is here. It goes on as soon as a worker is free.")
	case p.Passage.isGroup():
		return ui.Words("Its steps are under way" + c.since(step.CreatedAt) + ".")
	}
	return ui.Words(fmt.Sprintf("Working%s, try %d of %d.", c.since(step.BegunAt), step.Attempt, engine.MaxTries(p.node())))
}

// waitWords say what the step waits for, beside the badge that says that it waits.
func (p *panelView) waitWords(c clock) ui.Sentence {
	n := p.r.standingOf(p.Passage)
	switch {
	case n.Uncalled:
		return append(ui.Words(n.waited(c)+". "), n.limitWords()...)
	case n.Wait == engine.WaitRetry:
		return ui.Sentence{ui.Strong(sentenceCase(n.nextTry(c)) + "."), ui.Plain(" Last try: "), ui.Name(n.Reason)}
	case n.Wait == engine.WaitCap:
		return ui.Sentence{ui.Name(n.Reason), ui.Plain(" It has waited" + strings.TrimPrefix(c.lasting(n.Since), ",") + " and goes on by itself once the cap allows it.")}
	}
	return ui.Words(n.waited(c) + c.since(n.Since) + n.atMost(c) + ".")
}

// doneWords tell when it was done and how.
func (p *panelView) doneWords(c clock) ui.Sentence {
	step := p.Passage.Step
	ended := c.when(*step.EndedAt)
	switch {
	case p.Review != nil && !p.Review.Open() && p.node().HTTP() == nil: // whose note says what was answered
		return append(decidedBy(*p.Review), ui.Plain(", "+ended+"."))
	case step.Chosen != "":
		if list := p.node().Child(step.Chosen); list != nil {
			return ui.Sentence{ui.Plain("Took “"), ui.Name(list.Name), ui.Plain("”, " + ended + ".")}
		}
	}
	took := step.EndedAt.Sub(step.CreatedAt)
	if took < time.Second/10 { // which is all that a step without a call takes
		return ui.Words(sentenceCase(ended) + ", at once.")
	}
	return ui.Words(sentenceCase(ended) + ", after " + ui.Duration(took) + ".")
}

// interrupted tells whether a worker died in the middle of a try, and another followed.
func (p *panelView) interrupted() bool {
	for _, try := range p.Passage.Tries {
		if try.Outcome == engine.AttemptInterrupted && try.Number < p.Passage.Step.Attempt {
			return true
		}
	}
	return false
}

// sentenceEnd closes a sentence that has no full stop.
func sentenceEnd(words string) string {
	if words == "" || strings.ContainsAny(words[len(words)-1:], ".!?") {
		return words
	}
	return words + "."
}

// actions lead to the review where she can still answer it, and to what else can be done
// about the step. The head has the primary button, so these are plain.
func (p *panelView) actions() ui.Actions {
	var actions ui.Actions
	if p.Review != nil && p.Review.Open() {
		if seat, ok := p.Review.SeatOf(p.r.v.user); ok && seat.State == review.SeatOpen {
			actions = append(actions, ui.Button{Text: "Review and decide", Href: p.r.v.path("reviews", p.Review.ID.String())})
		}
	}
	return append(actions, p.handActions()...)
}

// value prepares a stored value for showing, with the way to have it whole.
func (p *panelView) value(id, label string, preview *engine.Preview, fields []pipeline.Field) valueView {
	return valueView{
		ID: id, Label: label, Preview: *preview, Fields: fields,
		Download: p.r.path("values", preview.Digest.String()) + queryOf("name", p.node().Step.Name+" "+strings.ToLower(label)),
	}
}

// resultFold is open: the result is what people come for.
func (p *panelView) resultFold() ui.Fold {
	if p.Output == nil {
		return ui.Fold{}
	}
	value := p.value("result", "Result", p.Output, p.outputFields())
	return ui.Fold{ID: "fold-result", Title: "Result", Answer: value.answer(), Open: true, Body: resultBody(value, p.model())}
}

// outputFields are what the step gives, named as its author named them.
func (p *panelView) outputFields() []pipeline.Field {
	if ask := p.node().AI(); ask != nil && len(ask.Answer) > 0 {
		return ask.Answer
	}
	return pipeline.Outputs(*p.node().Step)
}

// model is who wrote the result, where a model did.
func (p *panelView) model() string {
	if p.Passage.Step.Kind != pipeline.KindAI {
		return ""
	}
	if p.Passage.Step.AnsweredByPeople() {
		return ""
	}
	asked := p.Passage.asks()
	for _, charge := range p.Charges {
		if charge.ModelBilled != "" && charge.Model == asked {
			return charge.ModelBilled
		}
	}
	return asked
}

// inputFold shows what went out, by the names of the builder.
func (p *panelView) inputFold() ui.Fold {
	if p.Input == nil {
		return ui.Fold{}
	}
	value := p.value("input", "Input", p.Input, nil)
	return ui.Fold{ID: "fold-input", Title: "Input", Answer: value.answer(), Body: sentBody(p.sent(), value)}
}

// sent are the parts of what went out; nil where it is too large to be taken apart.
func (p *panelView) sent() []ui.Pair {
	if !p.Input.Whole() {
		return nil
	}
	switch p.Passage.Step.Kind {
	case pipeline.KindAI:
		var ask engine.AIInput
		if json.Unmarshal(p.Input.Bytes, &ask) != nil {
			return nil
		}
		pairs := []ui.Pair{{Label: "Models", Value: strings.Join(ask.Models, ", then ")}}
		if ask.Instructions != "" {
			pairs = append(pairs, ui.Pair{Label: "Instructions", Part: ui.Said(ask.Instructions)})
		}
		pairs = append(pairs, ui.Pair{Label: "Prompt", Part: ui.Said(ask.Prompt)})
		if len(ask.Files) > 0 {
			pairs = append(pairs, ui.Pair{Label: "Files", Value: attachedWords(ask.Files)})
		}
		return append(pairs, ui.Pair{Label: "Longest answer", Value: ui.Count(int64(ask.MaxTokens)) + " tokens"})
	case pipeline.KindEmail:
		var sent engine.EmailInput
		if json.Unmarshal(p.Input.Bytes, &sent) != nil {
			return nil
		}
		pairs := []ui.Pair{{Label: "To", Value: strings.Join(sent.To, ", ")}}
		if len(sent.CC) > 0 {
			pairs = append(pairs, ui.Pair{Label: "Copy to", Value: strings.Join(sent.CC, ", ")})
		}
		if len(sent.Attachments) > 0 {
			pairs = append(pairs, ui.Pair{Label: "Attached", Value: attachedWords(sent.Attachments)})
		}
		return append(pairs, ui.Pair{Label: "Subject", Value: sent.Subject}, ui.Pair{Label: "Text", Part: ui.Said(sent.Body)})
	case pipeline.KindHTTP:
		return sentCall(p.Input.Bytes)
	}
	return nil
}

// triesFold lists the tries of a step that reached outside.
func (p *panelView) triesFold() ui.Fold {
	if len(p.Passage.Tries) == 0 {
		return ui.Fold{}
	}
	table := ui.Table{Caption: "Tries of this step", CaptionUnseen: true, Keep: true, Tight: true,
		Columns: []ui.Column{{Title: "Try"}, {Title: "Outcome"}, {Title: "Time", Number: true}}}
	for _, try := range p.Passage.Tries {
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{
			{Text: fmt.Sprint(try.Number)},
			{Text: triedWords(try), Small: p.triedWhere(try)},
			{Text: ui.Duration(try.EndedAt.Sub(try.BeganAt))},
		}})
	}
	return ui.Fold{ID: "fold-tries", Title: "Attempts", Answer: ui.Count(int64(len(p.Passage.Tries))), Open: len(p.Passage.Tries) > 1, Body: table}
}

// triedWords say how a try ended, and why if it failed.
func triedWords(try engine.Attempt) string {
	words := map[engine.AttemptOutcome]string{
		engine.AttemptDone: "Done", engine.AttemptFailed: "Failed", engine.AttemptInterrupted: "Cut off", engine.AttemptCancelled: "Cancelled",
	}[try.Outcome]
	if try.Failure != nil {
		words += ": " + try.Failure.Message
	}
	if try.Followed != "" {
		words = sentenceEnd(words) + " " + try.Followed
	}
	return words
}

// triedWhere says which model a try asked, and when.
func (p *panelView) triedWhere(try engine.Attempt) string {
	when := ui.WhenBrief(try.BeganAt, p.r.Now, p.r.v.zone())
	if model := p.modelOf(try); model != "" {
		return modelName(model) + ", " + when
	}
	return when
}

// failureFold keeps what the other side said apart from our own words.
func (p *panelView) failureFold() ui.Fold {
	step := p.Passage.Step
	if step == nil || step.Failure == nil || step.Failure.Detail == "" || len(p.Calls) > 0 {
		return ui.Fold{}
	}
	return ui.Fold{ID: "fold-detail", Title: "Technical detail", Answer: step.Failure.Class,
		Body: ui.Code{ID: "detail", Label: "Technical detail", Text: step.Failure.Detail}}
}

// askFold is what the step does, as its pipeline says.
func (p *panelView) askFold() ui.Fold {
	return ui.Fold{ID: "fold-what", Title: "What this step does", Open: p.Passage.Step == nil,
		Body: ui.Words(tell(p.r.View.Program, p.node(), p.r.v.maySeeMoney()))}
}
