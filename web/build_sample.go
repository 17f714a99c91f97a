package web

import (
	"context"
	"fmt"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// samples are the values that a draft's sample gives, so far as they are known without
// running anything: its input, the recorded answers, and what is computed from those.
type samples struct{ scope expr.Scope }

// sampleTime bounds the work for one page.
const sampleTime = 200 * time.Millisecond

// samplesOf walks through a draft in reading order.
func samplesOf(ctx context.Context, d pipeline.Document) samples {
	s := samples{}
	if d.Sample == nil {
		return s
	}
	input, _, err := d.SampleInput()
	if err != nil {
		return s // the sample has problems of its own, which its page tells
	}
	decoded, err := expr.DecodeJSON(input)
	if err != nil {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	s.scope = expr.Scope{"input": decoded, "steps": map[string]any{}, "index": asNumber("0"), "round": asNumber("1")}
	s.walk(ctx, d.Sample, pipeline.Sketch(d).Roots())
	return s
}

func (s samples) walk(ctx context.Context, from *pipeline.Sample, nodes []*pipeline.Node) {
	for _, node := range nodes {
		if list, ok := node.Step.With.(*pipeline.Each); ok {
			s.enter(ctx, list)
		}
		if output := s.output(ctx, from, node.Step); output != nil {
			s.scope["steps"].(map[string]any)[node.ID()] = output
		}
		for _, list := range node.Lists {
			s.walk(ctx, from, list.Nodes)
		}
	}
}

// enter puts the first item of a list around the steps for each.
func (s samples) enter(ctx context.Context, list *pipeline.Each) {
	items, err := s.eval(ctx, list.Items)
	if all, ok := items.([]any); ok && err == nil && len(all) > 0 {
		s.scope["item"] = all[0]
	}
}

// output is what a step gives with the sample; nil where nobody can tell.
func (s samples) output(ctx context.Context, from *pipeline.Sample, step *pipeline.Step) any {
	switch with := step.With.(type) {
	case *pipeline.AI:
		if answer, err := expr.DecodeJSON(from.Answer(step.ID, 0)); err == nil {
			return answer
		}
	case *pipeline.Set:
		return s.values(ctx, with.Values)
	}
	return nil
}

func (s samples) values(ctx context.Context, values []pipeline.Value) any {
	out := map[string]any{}
	for _, value := range values {
		if given, err := s.eval(ctx, value.Formula); err == nil {
			out[value.Name] = given
		}
	}
	return out
}

func (s samples) eval(ctx context.Context, formula string) (any, error) {
	compiled, err := expr.Compile(formula)
	if err != nil {
		return nil, err
	}
	return compiled.Eval(ctx, s.scope)
}

// shows is what a formula gives with the sample, on one line; ok is false where there is
// no sample, or it does not reach as far.
func (s samples) shows(ctx context.Context, formula string) (text string, ok bool) {
	if s.scope == nil || formula == "" {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	value, err := s.eval(ctx, formula)
	if err != nil {
		return "", false
	}
	encoded, err := expr.EncodeJSON(value)
	if err != nil {
		return "", false
	}
	if shown := shortPartOf(encoded); shown != "" {
		return shown, true // money is a record, too
	}
	if shown := shortValue(encoded); shown != "" {
		return shown, true
	}
	return "nothing", true
}

func asNumber(digits string) any {
	decoded, err := expr.DecodeJSON([]byte(digits))
	if err != nil {
		panic(fmt.Sprintf("web: %q is no number", digits))
	}
	return decoded
}
