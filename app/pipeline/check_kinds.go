package pipeline

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"

	"tollgate/tenants"
)

// byKind checks what only the step's kind knows, but for formulas and texts.
func (c *checker) byKind(n *Node) {
	switch w := n.Step.With.(type) {
	case *AI:
		c.ai(n, w)
	case *Review:
		c.review(n, "with.", w)
	case *Email:
		c.email(n, w)
	case *Set:
		if len(w.Values) == 0 {
			c.blocks(n, "with.values", "it computes nothing yet. Add a value.")
		}
		c.values(n, "with.values", "it", w.Values)
	case *Branch:
		c.branch(n, w)
	case *Repeat:
		c.repeat(n, w)
	case *Each:
		c.each(n, w)
	case *Parallel:
		c.parallel(n, w)
	case *Wait:
		if (w.For == nil) == (w.Until == "") {
			c.blocks(n, "with", "it needs either how long to wait or a date to wait for, and not both.")
		}
	case *Event:
		c.event(n, w)
	case *HTTP:
		c.http(n, w)
	case *Child:
		if _, err := tenants.ParseID[Pipeline](w.Pipeline); err != nil || w.Version < 0 {
			c.blocks(n, "with.pipeline", "it does not say which pipeline to run. Choose one.")
		}
		c.values(n, "with.input", "the input", w.Input)
	case *Emit:
		c.label(n, "with.name", "the event", w.Name, true)
		c.values(n, "with.data", "the event", w.Data)
	case *Stop:
		c.oneOf(n, "with.outcome", string(w.Outcome), "", string(StopFinish), string(StopRaise))
		if w.Outcome == StopRaise && !validName(w.Exception) {
			c.blocks(n, "with.exception", "it needs the name of the exception, such as “regulatory_hold”. %s.", nameRule)
		}
	}
}

// oneOf refuses a word that is none of the allowed ones.
func (c *checker) oneOf(n *Node, field, word string, allowed ...string) {
	for _, a := range allowed {
		if word == a {
			return
		}
	}
	c.blocks(n, field, "“%s” cannot be used for %s. Use one of: %s.", shown(word), strings.TrimPrefix(field, "with."),
		quoted(nonEmpty(allowed)))
}

func nonEmpty(words []string) []string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

var modelPattern = regexp.MustCompile(`^[a-z0-9-]{1,40}/[A-Za-z0-9._:/-]{1,100}$`)

// What is missing blocks; what is only unusual is a tip.
func (c *checker) ai(n *Node, w *AI) {
	c.reuse(n, w.Reuse, w.ReuseFor)
	if len(w.Models) == 0 {
		c.blocks(n, "with.models", "no model is chosen. Choose one, or the practice model.")
	}
	if len(w.Models) > MaxModels {
		c.blocks(n, "with.models", "%d models are chosen; at most %d are tried in a row.", len(w.Models), MaxModels)
	}
	for i, m := range w.Models {
		if !modelPattern.MatchString(m) {
			c.blocks(n, fmt.Sprintf("with.models[%d]", i), "“%s” is not the name of a model. Write it like practice/standard.", shown(m))
		}
	}
	if strings.TrimSpace(w.Instructions) == "" {
		c.blocks(n, "with.instructions", "it does not say what the AI should do. Write it in plain words.")
	}
	if strings.TrimSpace(w.Prompt) == "" {
		c.blocks(n, "with.prompt", "it gives the AI nothing to read. Insert the data it should work on.")
	}
	if len(w.Files) > MaxAIFiles {
		c.blocks(n, "with.files", "it gives the AI %d files; at most %d can be sent at once. Remove some.", len(w.Files), MaxAIFiles)
	}
	c.picked(n, "with.files", w.Files)
	if len(w.Answer) == 0 {
		c.add(Tip, n, "with.answer", "the AI answers in free text. Add answer fields if later steps should use single values.")
	}
	c.fields(n, "with.answer", "The answer", w.Answer, nil)
	for i, f := range w.Answer {
		if f.Type == TypeFile {
			c.blocks(n, fmt.Sprintf("with.answer[%d].type", i), "an AI cannot answer “%s” with a file. Choose another type.", shown(f.Title()))
		}
	}
	if w.MaxTokens < 0 || w.MaxTokens > MaxAnswerTokens {
		c.blocks(n, "with.max_tokens", "an answer of %d tokens is not possible. Choose from 1 to %d, or leave it empty.", w.MaxTokens, MaxAnswerTokens)
	}
	if w.MaxCost < 0 {
		c.blocks(n, "with.max_cost", "the most it may cost is below zero. Set an amount, or leave it empty.")
	}
	c.oneOf(n, "with.on_refusal", string(w.OnRefusal), "", string(RefusalFail), string(RefusalNext), string(RefusalAsk))
	c.oneOf(n, "with.if_missing", string(w.IfMissing), "", string(MissingFail), string(MissingEmpty), string(MissingAsk))
	c.oneOf(n, "with.keep", string(w.Keep), "", string(KeepAnswer), string(KeepResponse), string(KeepSent))
	c.askedInstead(n, w)
}

// askedInstead checks who answers where the models do not, and whether that can be done on
// a form.
func (c *checker) askedInstead(n *Node, w *AI) {
	if !w.asks() {
		if len(w.Ask) > 0 {
			c.warn(n, "with.ask", "it names people to ask, but never asks them. Choose “ask” for what is done if the AI declines or a field stays empty, or remove them.")
		}
		return
	}
	if len(w.Ask) > 0 {
		c.asked(n, "with.ask", w.Ask)
	}
	for i, f := range w.Answer {
		if f.Type == TypeList || f.Type == TypeRecord {
			c.blocks(n, fmt.Sprintf("with.answer[%d].type", i), "people who are asked in the AI's place cannot fill in “%s”: it is a list or a record. Choose another type, or something else than asking.", shown(f.Title()))
		}
	}
}

// Header injection is refused where it is typed. Inserted values are cleaned when the
// mail is composed.
func (c *checker) email(n *Node, w *Email) {
	if len(w.To) == 0 {
		c.blocks(n, "with.to", "it has no address. Choose who gets it.")
	}
	for i, to := range w.To {
		c.addresses(n, fmt.Sprintf("with.to[%d]", i), to)
	}
	for i, cc := range w.CC {
		c.addresses(n, fmt.Sprintf("with.cc[%d]", i), cc)
	}
	if len(w.To)+len(w.CC) > MaxPeople {
		c.blocks(n, "with.to", "it goes to more than %d addresses. Split it, or send to a list.", MaxPeople)
	}
	if w.ReplyTo != "" {
		c.addresses(n, "with.reply_to", w.ReplyTo)
	}
	switch {
	case strings.TrimSpace(w.Subject) == "":
		c.blocks(n, "with.subject", "it has no subject. Write one.")
	case strings.ContainsFunc(literal(w.Subject), breaksLine):
		c.blocks(n, "with.subject", "its subject has a line break or a hidden control character in it. Type it again in one line.")
	}
	if strings.TrimSpace(w.Body) == "" {
		c.blocks(n, "with.body", "it has no text. Write what the mail should say.")
	}
	c.picked(n, "with.attachments", w.Attachments)
}

// picked refuses rows in which no file was picked.
func (c *checker) picked(n *Node, field string, files []string) {
	for i, file := range files {
		if strings.TrimSpace(file) == "" {
			c.blocks(n, fmt.Sprintf("%s[%d]", field, i), "file %d is not picked yet. Pick one, or remove the row.", i+1)
		}
	}
}

// literal is a text without its insertions.
func literal(text string) string {
	out := ""
	for {
		before, rest, found := strings.Cut(text, "{{")
		out += before
		if !found {
			return out
		}
		_, text, _ = strings.Cut(rest, "}}")
	}
}

// addresses checks those that are written out; inserted ones are checked when
// the mail is sent.
func (c *checker) addresses(n *Node, field, text string) {
	if strings.TrimSpace(text) == "" {
		c.blocks(n, field, "it has an empty address. Choose who gets it.")
		return
	}
	if strings.Contains(text, "{{") {
		return
	}
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if a, err := mail.ParseAddress(one); err != nil || a.Address != one || strings.ContainsFunc(one, breaksLine) {
			c.blocks(n, field, "“%s” is not an e-mail address. Write it like ana@company.example.", shown(one))
		}
	}
}

// A case without steps is fine: it means that nothing is to be done.
func (c *checker) branch(n *Node, w *Branch) {
	if len(w.Cases) == 0 {
		c.blocks(n, "with.cases", "it has no case to decide between. Add one.")
	}
	var ids, names []string
	for i, k := range w.Cases {
		ids, names = append(ids, k.ID), append(names, k.Name)
		if strings.TrimSpace(k.When) == "" {
			c.blocks(n, fmt.Sprintf("with.cases[%d].when", i), "“%s” has no condition. Say when it is taken.", shown(k.Name))
		}
	}
	c.lanes(n, "with.cases", "case", ids, names)
}

// lanes checks ids and names of cases or branches.
func (c *checker) lanes(n *Node, path, what string, ids, names []string) {
	if len(ids) > MaxCases {
		c.blocks(n, path, "it has %d of them; at most %d are possible.", len(ids), MaxCases)
	}
	seen := map[string]bool{string(ListOtherwise): true, string(ListSteps): true}
	for i, id := range ids {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.label(n, at+".name", fmt.Sprintf("%s %d", what, i+1), names[i], true)
		switch {
		case !validName(id):
			c.blocks(n, at+".id", "the id “%s” of %s %d cannot be used. %s.", shown(id), what, i+1, nameRule)
		case seen[id]:
			c.blocks(n, at+".id", "the id “%s” of %s %d is taken. Choose another.", id, what, i+1)
		}
		seen[id] = true
	}
}

// All three limits are required. A loop that may run for ever is never what is meant.
func (c *checker) repeat(n *Node, w *Repeat) {
	c.inner(n, "with.steps", w.Steps)
	if strings.TrimSpace(w.Until) == "" {
		c.blocks(n, "with.until", "it does not say when to end. Enter the condition.")
	}
	if w.MaxRounds < 1 || w.MaxRounds > MaxRounds {
		c.blocks(n, "with.max_rounds", "it may run %s. Choose from 1 to %d.", plural(w.MaxRounds, "round", "rounds"), MaxRounds)
	}
	if w.MaxCost <= 0 {
		c.blocks(n, "with.max_cost", "it has no limit on money. Set the most that all rounds may cost.")
	}
	if w.MaxTime <= 0 {
		c.blocks(n, "with.max_time", "it has no limit on time. Set the longest that all rounds may take.")
	}
	c.oneOf(n, "with.at_limit", string(w.AtLimit), string(LimitBest), string(LimitAsk), string(LimitFail))
	if w.AtLimit == LimitBest && strings.TrimSpace(w.Score) == "" {
		c.blocks(n, "with.score", "“best so far” needs a score. Enter how good a round is, as a number.")
	}
	switch {
	case w.AtLimit == LimitAsk:
		c.asked(n, "with.ask", w.Ask)
	case len(w.Ask) > 0:
		c.warn(n, "with.ask", "it names people to ask at a limit, but does something else there. Choose “ask”, or remove them.")
	}
}

func (c *checker) inner(n *Node, path string, steps []Step) {
	if len(steps) == 0 {
		c.blocks(n, path, "it has no steps inside. Add one.")
	}
}

func (c *checker) each(n *Node, w *Each) {
	c.inner(n, "with.steps", w.Steps)
	if strings.TrimSpace(w.Items) == "" {
		c.blocks(n, "with.items", "it does not say which items to go through. Choose a list.")
	}
	if w.AtOnce < 1 || w.AtOnce > MaxRounds {
		c.blocks(n, "with.at_once", "%d items at a time are not possible. Choose from 1 to %d.", w.AtOnce, MaxRounds)
	}
	if w.MaxFailed < 0 || w.MaxFailed > MaxItems {
		c.blocks(n, "with.max_failed", "%d items that may fail are not possible. Choose from 0 to %d.", w.MaxFailed, MaxItems)
	}
}

func (c *checker) parallel(n *Node, w *Parallel) {
	if len(w.Branches) < 2 {
		c.blocks(n, "with.branches", "side by side needs at least two branches. Add one.")
	}
	var ids, names []string
	for i, l := range w.Branches {
		ids, names = append(ids, l.ID), append(names, l.Name)
		c.inner(n, fmt.Sprintf("with.branches[%d].steps", i), l.Steps)
	}
	c.lanes(n, "with.branches", "branch", ids, names)
	c.oneOf(n, "with.wait_for", string(w.WaitFor), "", string(WaitAll), string(WaitFirst))
	c.oneOf(n, "with.combine", string(w.Combine), "", string(CombineCollect), string(CombineMajority), string(CombineBest))
	if w.Combine == CombineBest && strings.TrimSpace(w.Score) == "" {
		c.blocks(n, "with.score", "“best” needs a score. Enter how good a result is, as a number.")
	}
	if w.WaitFor == WaitFirst && w.Combine != "" && w.Combine != CombineCollect {
		c.blocks(n, "with.combine", "it takes the first good result, so there is nothing to combine. Wait for all branches, or leave this empty.")
	}
	if w.WaitFor != WaitFirst && w.Good != "" {
		c.warn(n, "with.good", "what a good result is matters only where the first good one is taken. Remove it, or wait for the first.")
	}
}

// An event may never come.
func (c *checker) event(n *Node, w *Event) {
	c.label(n, "with.name", "the event", w.Name, true)
	if w.Callback && w.Key != "" {
		c.blocks(n, "with.key", "it is answered at an address of its own, so a key means nothing. Remove the key, or wait for the event by its key.")
	}
	c.oneOf(n, "with.on_deadline", string(w.OnDeadline), "", string(DeadlineFail), string(DeadlineContinue))
	switch {
	case w.Deadline == nil && w.OnDeadline != "":
		c.warn(n, "with.deadline", "it says what happens when time is up, but has no time limit. Set one.")
	case w.Deadline == nil:
		c.add(Tip, n, "with.deadline", "it waits without limit. Set how long the event may take, and what happens then.")
	}
}
