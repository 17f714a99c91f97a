package pipeline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"tollgate/app/expr"
)

// Check reads a whole document and tells everything there is to fix, in reading
// order, but for steps that are turned off. A document without blocking problems can be compiled and published.
func Check(d Document) []Problem {
	off := map[string]bool{}
	offIDs(d.Steps, false, off)
	d = d.Active()
	c := checker{doc: &d, tree: grow(&d), off: off}
	c.document()
	for _, n := range c.tree.all {
		c.step(n)
	}
	c.recipients()
	c.hosts()
	return c.problems
}

type checker struct {
	doc      *Document
	tree     *tree
	off      map[string]bool // ids of steps that are turned off
	problems []Problem
}

// doc-level problems have no step; n is nil for them.
func (c *checker) add(severity Severity, n *Node, field, format string, args ...any) {
	p := Problem{Severity: severity, Field: field, Message: fmt.Sprintf(format, args...)}
	p.Says = p.Message
	if n != nil {
		p.Step = n.ID()
		p.Message = n.title() + ": " + p.Message
	}
	c.problems = append(c.problems, p)
}

func (c *checker) blocks(n *Node, field, format string, args ...any) {
	c.add(Blocks, n, field, format, args...)
}

func (c *checker) warn(n *Node, field, format string, args ...any) {
	c.add(Warning, n, field, format, args...)
}

// The document's own entries come first, since they are at the top of every page.
func (c *checker) document() {
	d := c.doc
	if d.Semantics < 1 || d.Semantics > Semantics {
		c.blocks(nil, "semantics", "This document follows rules number %d; this version of the product knows numbers 1 to %d. Set semantics to %d.", d.Semantics, Semantics, Semantics)
	}
	c.label(nil, "name", "The pipeline", d.Name, true)
	if size := len(d.JSON()); size > MaxDocument {
		c.blocks(nil, "", "The pipeline takes %d bytes as text; at most %d are possible. Move some steps into a pipeline of their own.", size, MaxDocument)
	}
	if len(d.Steps) == 0 {
		c.blocks(nil, "steps", "The pipeline has no steps yet. Add the first one.")
	}
	if c.tree.tooMany {
		c.blocks(nil, "steps", "The pipeline has more than %d steps. Move some into a pipeline of their own.", MaxSteps)
	}
	if n := c.tree.tooDeep; n != nil {
		c.blocks(n, "with", "steps sit inside steps more than %d deep here. Move the inner ones into a pipeline of their own.", MaxNesting)
	}
	if d.RunCap != nil && *d.RunCap < 0 {
		c.blocks(nil, "run_cap", "The most a run may cost is below zero. Set it to 0 or more, or leave it empty.")
	}
	c.concurrency()
	c.search()
	c.fields(nil, "input", "Input", d.Input, nil)
	c.slot(nil, slot{"run_name", "Name of each run", d.RunName, true}, onlyInput)
	c.slot(nil, slot{"cost_centre", "Cost centre", d.CostCentre, true}, onlyInput)
	c.values(nil, "result", "The result", d.Result)
	for _, s := range valueSlots("result", d.Result) {
		c.slot(nil, s, anyRoot)
	}
	c.sample()
}

// sample tells of answers that no step will ask for.
func (c *checker) sample() {
	if c.doc.Sample == nil {
		return
	}
	for id := range c.doc.Sample.Answers {
		if n := c.tree.byID[id]; n == nil || n.Kind() != KindAI {
			c.add(Tip, nil, "sample.answers."+shown(id), "The sample holds an answer for “%s”, which is no step that asks a model.", shown(id))
		}
	}
}

// step checks one step: what all kinds share, then what its kind needs.
func (c *checker) step(n *Node) {
	s := n.Step
	c.id(n)
	c.label(n, "name", "it", s.Name, true)
	c.text(n, "note", "Note", s.Note)
	c.policy(n)
	if !s.Kind.Known() {
		c.blocks(n, "kind", "“%s” is not a kind of step. Use one of: %s.", shown(string(s.Kind)), kindList())
		return
	}
	if s.With == nil || s.With.Kind() != s.Kind {
		c.blocks(n, "with", "its settings are those of another kind. Set it up anew as “%s”.", s.Kind.Title())
		return
	}
	c.byKind(n)
	c.settings(n)
	for _, slot := range s.With.slots() {
		c.slot(n, slot, anyRoot)
	}
	for _, slot := range append(innerSlots(s.With), catchSlots(s)...) {
		c.slotBehind(n, slot, anyRoot)
	}
	c.reach(n)
}

// Ids are judged as formulas will spell them. The later of two equal ones is told.
func (c *checker) id(n *Node) {
	id := n.ID()
	switch {
	case id == "":
		c.blocks(n, "id", "it has no id. Give it one like “draft_reply”.")
	case !validName(id):
		c.blocks(n, "id", "its id “%s” cannot be used. %s.", shown(id), nameRule)
	case c.tree.byID[id] != n:
		c.blocks(n, "id", "its id “%s” is that of %s, too. Give one of them another id.", id, c.tree.byID[id].title())
	}
}

// nameRule says what validName takes.
const nameRule = "Use small letters, digits and _, beginning with a letter, at most 40, and no word of the formula language"

// validName reports whether formulas can spell a name after a dot.
func validName(s string) bool {
	if len(s) == 0 || len(s) > 40 || s[0] < 'a' || s[0] > 'z' || reserved[s] {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// reserved words cannot stand after a dot in a formula.
var reserved = map[string]bool{
	"in": true, "true": true, "false": true, "null": true, "as": true, "break": true, "const": true,
	"continue": true, "else": true, "for": true, "function": true, "if": true, "import": true, "let": true,
	"loop": true, "package": true, "namespace": true, "return": true, "var": true, "void": true, "while": true,
}

// label checks a name that is shown to people and may end up in a mail's header.
func (c *checker) label(n *Node, field, what, name string, needed bool) {
	what = strings.ToUpper(what[:1]) + what[1:]
	if n != nil {
		what = strings.ToLower(what[:1]) + what[1:]
	}
	switch {
	case strings.TrimSpace(name) == "":
		if needed {
			c.blocks(n, field, "%s has no name. Give it one.", what)
		}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, breaksLine):
		c.blocks(n, field, "%s has a name with a line break or a hidden control character in it. Type the name again.", what)
	case utf8.RuneCountInString(name) > MaxName:
		c.blocks(n, field, "%s has a name of %d characters; at most %d are possible.", what, utf8.RuneCountInString(name), MaxName)
	}
}

// text bounds a text that nothing computes with.
func (c *checker) text(n *Node, field, label, s string) {
	if utf8.RuneCountInString(s) > MaxText {
		c.blocks(n, field, "%s is longer than %d characters. Shorten it.", label, MaxText)
	} else if err := expr.CheckText(s); err != nil {
		c.blocks(n, field, "%s: %s. Remove it.", label, err.Error())
	}
}

// maxTries bounds how often one step may be tried.
const maxTries = 20

// policy checks retry, timeout and on_error.
func (c *checker) policy(n *Node) {
	s := n.Step
	if r := s.Retry; r != nil && (r.Attempts < 1 || r.Attempts > maxTries) {
		c.blocks(n, "retry.attempts", "it is to be tried %s. Choose from 1 to %d.", plural(r.Attempts, "time", "times"), maxTries)
	}
	if r := s.Retry; r != nil && r.First != nil && r.Longest != nil && *r.First > *r.Longest {
		c.blocks(n, "retry.longest", "the longest pause between tries (%s) is shorter than the first (%s).", r.Longest, r.First)
	}
	for i, k := range s.OnError {
		c.catch(n, fmt.Sprintf("on_error[%d]", i), k)
	}
	c.caughtBefore(n)
}

// reach tells what can never happen: steps after a stop, cases after one that
// always holds.
func (c *checker) reach(n *Node) {
	if n.Kind() == KindStop && n.Index+1 < len(n.siblings) {
		next := n.siblings[n.Index+1]
		c.warn(next, "", "it is never reached, because %s ends the run before it. Move or remove one of them.", n.title())
	}
	branch, ok := n.Step.With.(*Branch)
	if !ok {
		return
	}
	for i, k := range branch.Cases {
		if strings.TrimSpace(k.When) == "true" && (i+1 < len(branch.Cases) || len(branch.Otherwise) > 0) {
			c.warn(n, fmt.Sprintf("with.cases[%d].when", i), "“%s” always holds, so nothing after it is ever reached. Change its condition or remove what follows.", shown(k.Name))
			return
		}
		if strings.TrimSpace(k.When) == "false" {
			c.warn(n, fmt.Sprintf("with.cases[%d].when", i), "“%s” never holds. Change its condition or remove it.", shown(k.Name))
		}
	}
}
