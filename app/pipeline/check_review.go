package pipeline

import (
	"fmt"
	"strings"
)

// roles are those a review can be put to. They are spelled as members have them.
var roles = []string{"owner", "admin", "builder", "reviewer", "finance", "auditor", "viewer"}

// reviewNames are the entries of a review's output that no edited field may take.
var reviewNames = map[string]string{
	"verdict": "the decision", "comment": "the reviewer's comment", "by": "who decided", "at": "when it was decided",
}

// review checks a question to people that sits at prefix.
func (c *checker) review(n *Node, prefix string, w *Review) {
	if strings.TrimSpace(w.Question) == "" {
		c.blocks(n, prefix+"question", "it asks no question. Write what is to be decided.")
	}
	exact := c.asked(n, prefix+"people", w.People)
	c.oneOf(n, prefix+"policy.rule", string(w.Policy.Rule), "", string(PolicyAny), string(PolicyAll), string(PolicyN))
	c.enough(n, prefix, w, exact)
	for i, f := range w.Facts {
		at := fmt.Sprintf("%sfacts[%d]", prefix, i)
		c.label(n, at+".label", fmt.Sprintf("fact %d", i+1), f.Label, true)
		if strings.TrimSpace(f.Formula) == "" {
			c.blocks(n, at+".formula", "fact “%s” has no value. Choose one.", shown(f.Label))
		}
	}
	if len(w.Facts) > MaxFields {
		c.blocks(n, prefix+"facts", "it shows %d facts; at most %d are possible.", len(w.Facts), MaxFields)
	}
	c.editable(n, prefix, w.Editable)
	if p := w.Proposal; p != nil {
		c.proposal(n, prefix+"proposal", p)
	}
	c.label(n, prefix+"labels.approve", "the button for yes", w.Labels.Approve, false)
	c.label(n, prefix+"labels.reject", "the button for no", w.Labels.Reject, false)
	c.label(n, prefix+"labels.send_back", "the button for changes", w.Labels.SendBack, false)
	c.deadline(n, prefix, w)
	c.oneOf(n, prefix+"proof", string(w.Proof), "", string(ProofLink), string(ProofLinkCode), string(ProofSignIn))
}

// asked checks who is asked, and reports whether their number is known. Roles and
// “everyone” are counted when the question is asked, not here: members come and go
// between publishing and running.
func (c *checker) asked(n *Node, path string, people []Person) bool {
	if len(people) == 0 {
		c.blocks(n, path, "nobody is asked. Choose at least one person.")
	}
	if len(people) > MaxPeople {
		c.blocks(n, path, "%d people or groups are asked; at most %d are possible.", len(people), MaxPeople)
	}
	exact := true
	for i, p := range people {
		at := fmt.Sprintf("%s[%d]", path, i)
		exact = exact && p.Role == "" && !p.Everyone && !strings.Contains(p.Email, "{{")
		set := 0
		for _, filled := range []bool{p.Email != "", p.User != "", p.Role != "", p.Everyone} {
			if filled {
				set++
			}
		}
		switch {
		case set != 1:
			c.blocks(n, at, "person %d is not clear. Choose one address, member, role or everyone who may review.", i+1)
		case p.Email != "":
			c.addresses(n, at+".email", p.Email)
		case p.Role != "":
			c.oneOf(n, at+".role", p.Role, roles...)
		}
	}
	return exact
}

// enough compares how many must agree with how many are asked, where that is
// known before the run.
func (c *checker) enough(n *Node, prefix string, w *Review, exact bool) {
	if w.Policy.Rule != PolicyN {
		return
	}
	asked := 0
	for _, p := range w.People {
		asked += 1 + strings.Count(p.Email, ",")
	}
	switch {
	case w.Policy.N < 1:
		c.blocks(n, prefix+"policy.n", "%s must agree. Choose at least 1.", plural(w.Policy.N, "person", "people"))
	case exact && w.Policy.N > asked:
		c.blocks(n, prefix+"policy.n", "it needs %d to agree, but asks only %d. Add people or ask fewer to agree.", w.Policy.N, asked)
	}
}

// An edited field becomes an output of the step, beside the decision.
func (c *checker) editable(n *Node, prefix string, list []Editable) {
	var fields []Field
	for i, e := range list {
		fields = append(fields, e.Field)
		at := fmt.Sprintf("%seditable[%d]", prefix, i)
		if strings.TrimSpace(e.Formula) == "" {
			c.blocks(n, at+".formula", "the field “%s” has nothing to begin with. Choose the value that is proposed.", shown(e.Field.Title()))
		}
		if e.Field.Type == TypeFile {
			c.blocks(n, at+".field.type", "a reviewer cannot change the file “%s”. Show it instead.", shown(e.Field.Title()))
		}
	}
	c.fields(n, prefix+"editable", "What may be edited", fields, reviewNames)
}

func (c *checker) proposal(n *Node, path string, p *Proposal) {
	if strings.TrimSpace(p.Text) == "" {
		c.blocks(n, path+".text", "its proposal is empty. Insert what is proposed, or remove it.")
	}
	if p.From != "" && c.tree.byID[p.From] == nil {
		c.blocks(n, path+".from", "its proposal is said to come from step “%s”, which does not exist. Choose another.", shown(p.From))
	}
}

// Silence that approves is allowed, as its author's explicit wish, and warned of.
func (c *checker) deadline(n *Node, prefix string, w *Review) {
	c.oneOf(n, prefix+"on_deadline", string(w.OnDeadline), "",
		string(DeadlineFail), string(DeadlineReject), string(DeadlineApprove), string(DeadlineContinue))
	switch {
	case w.Due == nil && w.OnDeadline != "":
		c.warn(n, prefix+"due", "it says what happens when time is up, but has no time limit. Set one.")
	case w.Due == nil:
		c.add(Tip, n, prefix+"due", "it waits without limit. Set how long people have, and what happens then.")
	case w.OnDeadline == DeadlineApprove:
		c.warn(n, prefix+"on_deadline", "no answer counts as yes after %s. Choose another end if somebody has to agree.", w.Due)
	}
}
