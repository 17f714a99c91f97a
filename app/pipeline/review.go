package pipeline

import "fmt"

// PolicyRule says how many answers decide.
type PolicyRule string

// The rules by which answers decide.
const (
	PolicyAny PolicyRule = "any" // one person is enough; this is also what "" means
	PolicyAll PolicyRule = "all"
	PolicyN   PolicyRule = "n" // as many as N says
)

// DeadlineAction is what happens when nobody answered in time.
type DeadlineAction string

// What can happen at a deadline. Silence approves only where it says so.
const (
	DeadlineFail     DeadlineAction = "fail" // this is also what "" means
	DeadlineReject   DeadlineAction = "reject"
	DeadlineApprove  DeadlineAction = "approve"
	DeadlineContinue DeadlineAction = "continue" // go on with verdict "timeout"
)

// Proof is how a reviewer shows who they are.
type Proof string

// The kinds of proof, from light to strong.
const (
	ProofLink     Proof = "link" // this is also what "" means
	ProofLinkCode Proof = "link_code"
	ProofSignIn   Proof = "sign_in"
)

// Verdicts of a review step, found at steps.<id>.verdict.
const (
	VerdictApproved = "approved"
	VerdictRejected = "rejected"
	VerdictSentBack = "sent_back"
	VerdictTimeout  = "timeout"
)

// Review asks people. Its output holds "verdict", "comment", "by", "at" and one
// entry per editable field: as edited, or as proposed where nobody changed it.
type Review struct {
	Question       string         `json:"question"`
	Body           string         `json:"body,omitempty"`
	Facts          []Fact         `json:"facts,omitempty"`
	Proposal       *Proposal      `json:"proposal,omitempty"`
	Editable       []Editable     `json:"editable,omitempty"`
	People         []Person       `json:"people"`
	Policy         Policy         `json:"policy,omitzero"`
	AllowRequester bool           `json:"allow_requester,omitempty"` // may who started the run decide?
	SendBack       bool           `json:"send_back,omitempty"`       // may a reviewer ask for another round?
	Labels         Labels         `json:"labels,omitzero"`
	Due            *Duration      `json:"due,omitempty"` // counted from when people could answer; nil: no deadline
	OnDeadline     DeadlineAction `json:"on_deadline,omitempty"`
	Consequences   Consequences   `json:"consequences,omitzero"`
	Proof          Proof          `json:"proof,omitempty"`
}

// Fact is one line of what a reviewer should know.
type Fact struct {
	Label   string `json:"label"`
	Formula string `json:"formula"`
}

// Proposal is what a reviewer judges, with the step that wrote it.
type Proposal struct {
	Text string `json:"text"`
	From string `json:"from,omitempty"` // id of the step that wrote it
}

// Editable is a field that a reviewer may change before approving.
type Editable struct {
	Field   Field  `json:"field"`
	Formula string `json:"formula"` // the proposed value
}

// Person is one entry of who is asked; exactly one of its fields is set.
type Person struct {
	Email    string `json:"email,omitempty"`    // text; may name several addresses apart by commas
	User     string `json:"user,omitempty"`     // id or e-mail address of a member
	Role     string `json:"role,omitempty"`     // every member with this role
	Everyone bool   `json:"everyone,omitempty"` // every member who may review
}

// Policy says how many answers decide.
type Policy struct {
	Rule PolicyRule `json:"rule,omitempty"`
	N    int        `json:"n,omitempty"`
}

// Labels are the words on the buttons; their meaning stays.
type Labels struct {
	Approve  string `json:"approve,omitempty"`
	Reject   string `json:"reject,omitempty"`
	SendBack string `json:"send_back,omitempty"`
}

// Consequences tell a reviewer what each answer, and no answer, leads to.
type Consequences struct {
	Approve string `json:"approve,omitempty"`
	Reject  string `json:"reject,omitempty"`
	Silence string `json:"silence,omitempty"`
}

// Kind is KindReview.
func (*Review) Kind() Kind { return KindReview }

func (*Review) lists() []nested { return nil }

func (c *Review) slots() []slot { return c.slotsAt("with.") }

// slotsAt lists the slots of a review that sits at prefix: a step's own, or the
// one that on_error asks.
func (c *Review) slotsAt(prefix string) []slot {
	out := []slot{
		{prefix + "question", "Question", c.Question, true},
		{prefix + "body", "Text", c.Body, true},
	}
	for i, f := range c.Facts {
		out = append(out, slot{fmt.Sprintf("%sfacts[%d].formula", prefix, i), "Fact “" + f.Label + "”", f.Formula, false})
	}
	if c.Proposal != nil {
		out = append(out, slot{prefix + "proposal.text", "Proposal", c.Proposal.Text, true})
	}
	for i, e := range c.Editable {
		out = append(out, slot{fmt.Sprintf("%seditable[%d].formula", prefix, i), "Field “" + e.Field.Title() + "”", e.Formula, false})
	}
	for i, p := range c.People {
		if p.Email != "" {
			out = append(out, slot{fmt.Sprintf("%speople[%d].email", prefix, i), "People", p.Email, true})
		}
	}
	return append(out,
		slot{prefix + "consequences.approve", "What approving leads to", c.Consequences.Approve, true},
		slot{prefix + "consequences.reject", "What refusing leads to", c.Consequences.Reject, true},
		slot{prefix + "consequences.silence", "What silence leads to", c.Consequences.Silence, true},
	)
}
