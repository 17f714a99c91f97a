package pipeline

import (
	"fmt"
	"time"

	"tollgate/app/expr"
)

// Compile makes a document ready to run. A document with blocking problems is
// refused with all of them, as an *Invalid. The program shares nothing with d.
func Compile(d Document) (*Program, error) {
	if blocking := Blocking(Check(d)); len(blocking) > 0 {
		return nil, &Invalid{blocking}
	}
	return compile(d)
}

// compile is Compile without the checks. A published version was checked when it
// was published; what later builds learn to check must not stop it from running.
func compile(d Document) (*Program, error) {
	own, err := Parse(d.Active().JSON())
	if err != nil {
		return nil, fmt.Errorf("copy the document: %w", err)
	}
	p := &Program{doc: own}
	t := grow(&p.doc)
	p.roots, p.byID = t.roots, t.byID
	c := compiler{}
	for _, n := range t.all {
		n.config, n.Reuse = c.config(n), reuseOf(n.Step.With)
		n.refs, c.refs = c.refs, nil
		n.Catches = c.catches(n)
	}
	p.runName, p.centre = c.optional(own.RunName), c.optional(own.CostCentre)
	p.result = c.values(own.Result)
	if c.err != nil {
		return nil, fmt.Errorf("compile the pipeline: %w", c.err)
	}
	return p, nil
}

// compiler compiles formulas and texts, notes what they read, and keeps the first
// error, which Check has made all but impossible.
type compiler struct {
	refs []expr.Ref
	err  error
}

// A nil formula is safe, because the error that comes with it voids the program.
func (c *compiler) formula(src string) *expr.Formula {
	f, err := expr.Compile(src)
	if err != nil {
		c.keep(err)
		return nil
	}
	c.refs = append(c.refs, f.Refs()...)
	return f
}

func (c *compiler) text(src string) *expr.Text {
	t, err := expr.ParseText(src)
	if err != nil {
		c.keep(err)
		return nil
	}
	c.refs = append(c.refs, t.Refs()...)
	return t
}

// optional is nil for a text that is not there.
func (c *compiler) optional(src string) *expr.Text {
	if src == "" {
		return nil
	}
	return c.text(src)
}

func (c *compiler) keep(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *compiler) texts(sources []string) []*expr.Text {
	var out []*expr.Text
	for _, src := range sources {
		out = append(out, c.text(src))
	}
	return out
}

func (c *compiler) formulas(sources []string) []*expr.Formula {
	var out []*expr.Formula
	for _, src := range sources {
		out = append(out, c.formula(src))
	}
	return out
}

func (c *compiler) values(values []Value) []CompiledValue {
	var out []CompiledValue
	for _, v := range values {
		out = append(out, CompiledValue{v.Name, c.formula(v.Formula)})
	}
	return out
}

// config compiles a step's configuration. Kinds that do not run yet have none,
// and Check has refused them.
func (c *compiler) config(n *Node) any {
	switch w := n.Step.With.(type) {
	case *AI:
		return c.ai(w)
	case *Review:
		return c.review(w)
	case *Email:
		return &CompiledEmail{
			To: c.texts(w.To), CC: c.texts(w.CC), ReplyTo: c.optional(w.ReplyTo),
			Subject: c.text(w.Subject), Body: c.text(w.Body), Attachments: c.formulas(w.Attachments),
		}
	case *HTTP:
		return c.http(w)
	case *Set:
		return &CompiledSet{c.values(w.Values)}
	case *Branch:
		return c.branch(n, w)
	case *Repeat:
		return c.repeat(n, w)
	case *Each:
		return c.each(n, w)
	case *Parallel:
		return c.parallel(n, w)
	case *Wait:
		return c.wait(w)
	case *Event:
		return c.event(w)
	case *Child:
		return c.child(w)
	case *Emit:
		return &CompiledEmit{Name: w.Name, Key: c.optional(w.Key), Data: c.values(w.Data)}
	case *Stop:
		return c.stop(w)
	}
	return nil
}

// Defaults are filled in here, so that nobody downstream has to know them.
func (c *compiler) ai(w *AI) *CompiledAI {
	out := &CompiledAI{
		Models: w.Models, Instructions: c.text(w.Instructions), Prompt: c.text(w.Prompt), Files: c.formulas(w.Files),
		Answer: w.Answer, MaxTokens: w.MaxTokens, MaxCost: w.MaxCost,
		OnRefusal: either(w.OnRefusal, RefusalFail), IfMissing: either(w.IfMissing, MissingFail),
		Ask: c.asked(w.Ask), Keep: either(w.Keep, KeepResponse),
	}
	if w.KeepRequest && w.Keep == "" {
		out.Keep = KeepSent
	}
	if len(out.Ask) == 0 {
		out.Ask = []CompiledPerson{{Role: "owner"}, {Role: "admin"}}
	}
	if out.MaxTokens == 0 {
		out.MaxTokens = DefaultAnswerTokens
	}
	return out
}

// either is word, or what an empty word means.
func either[T ~string](word, meaning T) T {
	if word == "" {
		return meaning
	}
	return word
}

func (c *compiler) review(w *Review) *CompiledReview {
	out := &CompiledReview{
		Question: c.text(w.Question), Body: c.optional(w.Body),
		Rule: either(w.Policy.Rule, PolicyAny), N: w.Policy.N,
		AllowRequester: w.AllowRequester, SendBack: w.SendBack,
		Labels: Labels{
			Approve: either(w.Labels.Approve, "Approve"), Reject: either(w.Labels.Reject, "Reject"),
			SendBack: either(w.Labels.SendBack, "Ask for changes"),
		},
		OnDeadline: either(w.OnDeadline, DeadlineFail), Proof: either(w.Proof, ProofLink),
		OnApprove: c.optional(w.Consequences.Approve), OnReject: c.optional(w.Consequences.Reject),
		OnSilence: c.optional(w.Consequences.Silence),
	}
	if w.Due != nil {
		out.Due = time.Duration(*w.Due)
	}
	if w.Proposal != nil {
		out.Proposal, out.ProposalFrom = c.text(w.Proposal.Text), w.Proposal.From
	}
	for _, f := range w.Facts {
		out.Facts = append(out.Facts, CompiledFact{f.Label, c.formula(f.Formula)})
	}
	for _, e := range w.Editable {
		out.Editable = append(out.Editable, CompiledEditable{e.Field, c.formula(e.Formula)})
	}
	out.People = c.asked(w.People)
	return out
}

// The last list is “otherwise”; without a condition it is always taken.
func (c *compiler) branch(n *Node, w *Branch) *CompiledBranch {
	for i := range w.Cases {
		n.Lists[i].When = c.formula(w.Cases[i].When)
	}
	return &CompiledBranch{n.Lists[:len(w.Cases)+1]}
}
