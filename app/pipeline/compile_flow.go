package pipeline

import (
	"strings"
	"time"

	"tollgate/app/expr"
	"tollgate/tenants"
)

// maybe is nil for a formula that is not there.
func (c *compiler) maybe(src string) *expr.Formula {
	if strings.TrimSpace(src) == "" {
		return nil
	}
	return c.formula(src)
}

func (c *compiler) repeat(n *Node, w *Repeat) *CompiledRepeat {
	return &CompiledRepeat{
		Steps: n.Lists[0].Nodes, Until: c.formula(w.Until), Score: c.maybe(w.Score), Result: c.maybe(w.Result),
		MaxRounds: w.MaxRounds, MaxCost: w.MaxCost, MaxTime: time.Duration(w.MaxTime), AtLimit: w.AtLimit, Ask: c.asked(w.Ask),
	}
}

func (c *compiler) each(n *Node, w *Each) *CompiledEach {
	return &CompiledEach{
		Steps: n.Lists[0].Nodes, Items: c.formula(w.Items), Result: c.maybe(w.Result),
		AtOnce: w.AtOnce, MaxFailed: w.MaxFailed,
	}
}

func (c *compiler) parallel(n *Node, w *Parallel) *CompiledParallel {
	out := &CompiledParallel{
		WaitFor: either(w.WaitFor, WaitAll), Combine: either(w.Combine, CombineCollect), Good: c.maybe(w.Good),
	}
	if out.Combine == CombineBest {
		out.Score = c.formula(w.Score)
	}
	for i, lane := range w.Branches {
		out.Lanes = append(out.Lanes, CompiledLane{&n.Lists[i], c.maybe(lane.Result)})
	}
	return out
}

func (c *compiler) wait(w *Wait) *CompiledWait {
	if w.For != nil {
		return &CompiledWait{For: time.Duration(*w.For)}
	}
	return &CompiledWait{Until: c.formula(w.Until)}
}

func (c *compiler) event(w *Event) *CompiledEvent {
	out := &CompiledEvent{Name: w.Name, Key: c.optional(w.Key), OnDeadline: either(w.OnDeadline, DeadlineFail), Callback: w.Callback}
	if w.Deadline != nil {
		out.Deadline = time.Duration(*w.Deadline)
	}
	return out
}

func (c *compiler) child(w *Child) *CompiledChild {
	id, err := tenants.ParseID[Pipeline](w.Pipeline)
	if err != nil {
		c.keep(err)
	}
	return &CompiledChild{Pipeline: id, Version: w.Version, Input: c.values(w.Input), Wait: w.Wait}
}

func (c *compiler) stop(w *Stop) *CompiledStop {
	return &CompiledStop{Outcome: either(w.Outcome, StopFinish), Exception: w.Exception, Message: c.optional(w.Message)}
}

// asked compiles who is asked.
func (c *compiler) asked(people []Person) []CompiledPerson {
	var out []CompiledPerson
	for _, p := range people {
		out = append(out, CompiledPerson{c.optional(p.Email), p.User, p.Role, p.Everyone})
	}
	return out
}
