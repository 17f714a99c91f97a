package web

import (
	"context"
	"fmt"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// shownTries is how many of a step's tries are shown with what went out and came in: the
// last ones.
const shownTries = 6

// triedCall is one try of a step that asks models, with what is kept of it.
type triedCall struct {
	engine.Attempt
	Sent, Received *engine.Preview
}

// readCalls reads what is kept of the last tries.
func (p *panelView) readCalls(ctx context.Context, tx tenants.Tx) error {
	tries := p.Passage.Tries
	for _, try := range tries[max(0, len(tries)-shownTries):] {
		call := triedCall{Attempt: try}
		var err error
		if call.Sent, err = p.r.preview(ctx, tx, try.Sent); err != nil {
			return err
		}
		if call.Received, err = p.r.preview(ctx, tx, try.Received); err != nil {
			return err
		}
		p.Calls = append(p.Calls, call)
	}
	return nil
}

// liveFold is what the model has written so far, while it writes.
func (p *panelView) liveFold() ui.Fold {
	if p.Live == "" {
		return ui.Fold{}
	}
	return ui.Fold{ID: "fold-live", Title: "Being written", Answer: modelName(p.Passage.asks()), Open: true, Body: liveBody(p.Live)}
}

// callsFold keeps the provider's own words, and what was sent and came, apart from ours.
func (p *panelView) callsFold() ui.Fold {
	var shown []callDetail
	for i := range p.Calls {
		if detail := p.callDetail(i); len(detail.Boxes) > 0 {
			shown = append(shown, detail)
		}
	}
	if len(shown) == 0 {
		return ui.Fold{}
	}
	return ui.Fold{ID: "fold-detail", Title: "Technical detail", Answer: ui.Plural(int64(len(shown)), "call", "calls"), Body: callDetails(shown)}
}

// callDetail is a try as its technical detail shows it.
type callDetail struct {
	Title string
	Boxes []labelledCode
}

type labelledCode struct {
	Label string
	Code  ui.Code
}

func (p *panelView) callDetail(i int) callDetail {
	call := p.Calls[i]
	detail := callDetail{Title: fmt.Sprintf("Try %d", call.Number)}
	if model := p.modelOf(call.Attempt); model != "" {
		detail.Title += ", " + modelName(model)
	}
	if call.Failure != nil && call.Failure.Detail != "" {
		detail.Boxes = append(detail.Boxes, labelledCode{"The provider’s words", ui.Code{Text: call.Failure.Detail}})
	}
	for _, kept := range []struct {
		label   string
		preview *engine.Preview
	}{{"Answer as it came", call.Received}, {"Request as it was sent", call.Sent}} {
		if kept.preview == nil {
			continue
		}
		name := fmt.Sprintf("%s, try %d, %s", p.node().Step.Name, call.Number, strings.ToLower(kept.label))
		detail.Boxes = append(detail.Boxes, labelledCode{kept.label, ui.Code{
			Text: string(kept.preview.Bytes), Size: kept.preview.Size,
			Download: p.r.path("values", kept.preview.Digest.String()) + queryOf("name", name),
		}})
	}
	for n := range detail.Boxes {
		box := &detail.Boxes[n]
		box.Code.ID, box.Code.Label = fmt.Sprintf("call-%d-%d", call.Number, n), detail.Title+": "+strings.ToLower(box.Label)
	}
	return detail
}

// modelOf is the model that a try asked. Where its record does not say, it is the one at
// which the step stands.
func (p *panelView) modelOf(try engine.Attempt) string {
	if try.Model != "" || p.Passage.Step.Kind != pipeline.KindAI {
		return try.Model
	}
	return p.Passage.asks()
}

// asks is the model that the step asks, or asked last.
func (p passage) asks() string {
	ask := p.Node.AI()
	if ask == nil {
		return ""
	}
	if p.Step == nil {
		return ask.Models[0]
	}
	return ask.Models[min(p.Step.Chain.Place, len(ask.Models)-1)]
}

// chainWords name the models that a step asked one after the other, and what became of
// each; nothing where there was only one.
func (p passage) chainWords() ui.Sentence {
	var words ui.Sentence
	last := ""
	for _, try := range p.Tries {
		if try.Model == "" || try.Model == last {
			continue
		}
		if last != "" {
			words = append(words, ui.Plain(", then "))
		}
		words = append(words, ui.Name(modelName(try.Model)))
		if try.Failure != nil {
			words = append(words, ui.Plain(" ("+classWords(try.Failure.Class)+")"))
		}
		last = try.Model
	}
	if at := p.asks(); p.Step.State.Open() && last != "" && at != last {
		words = append(words, ui.Plain(", now "), ui.Name(modelName(at)))
	} else if !manyModels(p.Tries) {
		return nil
	}
	return append(ui.Sentence{ui.Plain("Asked ")}, append(words, ui.Plain("."))...)
}

func manyModels(tries []engine.Attempt) bool {
	models := map[string]bool{}
	for _, try := range tries {
		if try.Model != "" {
			models[try.Model] = true
		}
	}
	return len(models) > 1
}

// classWords are the classes of a model's failures in a word or two.
func classWords(class string) string {
	if words, ok := map[string]string{
		"rate_limited": "too many calls", "overloaded": "overloaded", "server": "failed", "timeout": "too slow",
		"connection": "not reached", "context_too_long": "too much to read", "refused": "declined",
		"invalid_request": "request not accepted", "auth": "key not accepted", "spend_limit": "no money left there",
		"malformed": "answer could not be used", "empty": "empty answer", "truncated": "answer cut off",
		engine.ClassNoPrice: "no known price", engine.ClassTooDear: "too dear", engine.ClassInterrupted: "cut off",
	}[class]; ok {
		return words
	}
	return "failed"
}
