package pipeline

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

// group rehearses the kinds that loop, run side by side, wait for an event, or stop.
func (r *rehearsal) group(n *Node, out map[string]any) {
	r.Helper()
	switch n.Kind() {
	case KindParallel:
		r.beside(n, out)
	case KindRepeat:
		r.loop(n, out)
	case KindEach:
		r.each(n, out)
	case KindEvent:
		r.log.WriteString("key " + r.render(n.Event().Key) + "\n")
		out["outcome"], out["data"] = EventReceived, map[string]any{"cause": "A worn bearing", "by": "J. Lindqvist", "status": "passed"}
	case KindStop:
		message := r.render(n.Stop().Message)
		if n.Stop().Outcome == StopRaise {
			r.failed = raised{n.Stop().Exception, message}
			return
		}
		r.log.WriteString("stop: " + message + "\n")
		r.stopped = true
	case KindEmit:
		r.log.WriteString("key " + r.render(n.Emit().Key) + "\n")
		for _, v := range n.Emit().Data {
			r.log.WriteString(v.Name + " = " + r.eval(v.Formula) + "\n")
		}
	case KindWait:
		r.log.WriteString("until " + r.eval(n.Wait().Until) + "\n")
	default:
		require.Failf(r, "no rehearsal", "of %s", n.Kind())
	}
}

// raised is an exception of the pipeline's own.
type raised struct{ name, message string }

func (e raised) Error() string { return e.message }

// handle does what a step says about its failure.
func (r *rehearsal) handle(n *Node) {
	e, ok := r.failed.(raised)
	if !ok {
		return
	}
	for _, k := range n.Catches {
		if !k.Fits(e.name, true) {
			continue
		}
		r.log.WriteString("raised: " + e.name + "\n")
		r.failed, r.scope["error"] = nil, map[string]any{"class": e.name, "name": e.name, "message": e.message, "step": n.ID()}
		switch k.Do {
		case CatchSteps:
			r.list(k.List.Nodes)
		case CatchAsk:
			r.log.WriteString(r.render(k.Ask.Question) + "\n" + r.render(k.Ask.Body) + "\n")
		default:
			require.Failf(r, "no rehearsal", "of %s", k.Do)
		}
		return
	}
}

// value is what a list of steps gave.
func (r *rehearsal) value(nodes []*Node, result *expr.Formula) any {
	r.Helper()
	if result == nil {
		return r.steps[nodes[len(nodes)-1].ID()]
	}
	v, err := result.Eval(r.Context(), r.scope)
	require.NoError(r, err)
	return v
}

// beside takes all that the branches say, or what most of them do.
func (r *rehearsal) beside(n *Node, out map[string]any) {
	results, votes, all := map[string]any{}, map[string]int{}, []any{}
	for _, lane := range n.Parallel().Lanes {
		r.list(lane.List.Nodes)
		result := r.value(lane.List.Nodes, lane.Result)
		results[string(lane.List.Key)], all = result, append(all, result)
		encoded, err := json.Marshal(result)
		require.NoError(r, err)
		if votes[string(encoded)]++; 2*votes[string(encoded)] > len(n.Parallel().Lanes) {
			out["combined"] = result
		}
	}
	if out["results"] = results; n.Parallel().Combine == CombineCollect {
		out["combined"] = all
	}
}

// loop goes through rounds until the end condition holds, or to its limit and on with the
// last round.
func (r *rehearsal) loop(n *Node, out map[string]any) {
	loop := n.Repeat()
	out["reason"] = EndRounds
	for round := 1; round <= loop.MaxRounds && out["reason"] == EndRounds; round++ {
		r.turn, r.scope["round"] = round-1, json.Number(string(rune('0'+round)))
		r.list(loop.Steps)
		if r.failed != nil || r.stopped {
			return
		}
		if loop.Score != nil {
			r.log.WriteString("score " + r.eval(loop.Score) + "\n")
		}
		done, err := loop.Until.Bool(r.Context(), r.scope)
		require.NoError(r, err)
		if done {
			out["reason"] = EndUntil
		}
		out["rounds"], out["best"] = r.scope["round"], r.value(loop.Steps, loop.Result)
	}
	r.turn = 0
}

// each goes through the items one after the other; those that fail are noted.
func (r *rehearsal) each(n *Node, out map[string]any) {
	items, err := n.Each().Items.Eval(r.Context(), r.scope)
	require.NoError(r, err)
	results, failed := []any{}, []any{}
	for i, item := range items.([]any) {
		for _, step := range n.Each().Steps {
			r.forget(step)
		}
		r.turn, r.scope["item"], r.scope["index"] = i, item, json.Number(string(rune('0'+i)))
		r.list(n.Each().Steps)
		if r.failed != nil {
			r.log.WriteString("failed: " + r.failed.Error() + "\n")
			results, failed = append(results, nil), append(failed, map[string]any{"index": r.scope["index"], "message": r.failed.Error()})
			r.failed = nil
			continue
		}
		results = append(results, r.value(n.Each().Steps, n.Each().Result))
	}
	require.LessOrEqual(r, len(failed), n.Each().MaxFailed)
	delete(r.scope, "item")
	r.turn, out["results"], out["failed"] = 0, results, failed
}

// forget removes what a step of the item before gave.
func (r *rehearsal) forget(n *Node) {
	delete(r.steps, n.ID())
	for _, list := range n.Lists {
		for _, inner := range list.Nodes {
			r.forget(inner)
		}
	}
}
