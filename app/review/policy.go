package review

import "fmt"

// Rule says how many answers decide.
type Rule string

// The rules. "" means RuleAny.
const (
	RuleAny Rule = "any" // the first answer stands
	RuleAll Rule = "all"
	RuleN   Rule = "n" // as many as N says
)

// Policy says how many answers decide. One refusal or one request for changes ends a
// review under every rule.
type Policy struct {
	Rule Rule `json:"rule"`
	N    int  `json:"n,omitempty"`
}

// Needs is how many of seats must agree.
func (p Policy) Needs(seats int) int {
	switch p.Rule {
	case RuleAll:
		return seats
	case RuleN:
		return p.N
	}
	return 1
}

// check tells whether the policy can ever pass with so many seats.
func (p Policy) check(seats int) error {
	switch p.Rule {
	case "", RuleAny, RuleAll:
	case RuleN:
		if p.N < 1 {
			return fmt.Errorf("%w: it needs %d answers, and the least is 1", ErrBadQuestion, p.N)
		}
	default:
		return fmt.Errorf("%w: %q is no rule", ErrBadQuestion, p.Rule)
	}
	if seats == 0 {
		return ErrNobodyToAsk
	}
	if need := p.Needs(seats); need > seats {
		return fmt.Errorf("%w: %d must agree and %d may be asked", ErrNobodyToAsk, need, seats)
	}
	return nil
}

// Outcome is how a review ended; "" while it is open.
type Outcome string

// The outcomes. The first three come from people, the others from Close.
const (
	OutcomeApproved  Outcome = "approved"
	OutcomeRejected  Outcome = "rejected"
	OutcomeSentBack  Outcome = "sent_back"
	OutcomeTimeout   Outcome = "timeout"   // nobody answered in time
	OutcomeCancelled Outcome = "cancelled" // the run was stopped
	OutcomeWithdrawn Outcome = "withdrawn" // the run went on without an answer
)

// ByPeople tells whether people decided.
func (o Outcome) ByPeople() bool {
	return o == OutcomeApproved || o == OutcomeRejected || o == OutcomeSentBack
}

// Verdict is one person's answer.
type Verdict string

// The verdicts.
const (
	Approve          Verdict = "approve"
	ApproveWithEdits Verdict = "approve_with_edits"
	SendBack         Verdict = "send_back"
	Reject           Verdict = "reject"
)

func (v Verdict) known() bool {
	return v == Approve || v == ApproveWithEdits || v == SendBack || v == Reject
}

// tally gives the outcome of a review with so many seats after these verdicts, which
// are in the order in which they were given, or "" while more answers are needed.
func tally(p Policy, seats int, verdicts []Verdict) Outcome {
	agreed := 0
	for _, verdict := range verdicts {
		switch verdict {
		case Reject:
			return OutcomeRejected
		case SendBack:
			return OutcomeSentBack
		case Approve, ApproveWithEdits:
			agreed++
		}
	}
	if agreed > 0 && agreed >= p.Needs(seats) {
		return OutcomeApproved
	}
	return ""
}
