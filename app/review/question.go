package review

import (
	"encoding/json"
	"time"

	"tollgate/tenants"
)

// Question is what a run asks people, with everything they are shown.
type Question struct {
	RunID     [16]byte
	StepRunID [16]byte
	Round     int // 1, or one more than the round that was sent back; 0 means 1

	PipelineName string
	RunName      string
	Title        string // the question itself
	Body         string // plain text
	Facts        []Fact
	Proposal     Proposal
	Editable     []EditableField
	Labels       Labels
	Consequences Consequences

	People         []Person
	Policy         Policy
	Requester      tenants.UserID // who started the run; zero when nobody did
	AllowRequester bool           // the requester may decide too
	SendBack       bool           // reviewers may ask for another round
	Due            *time.Time     // nil: open until somebody answers
	Proof          Proof          // "" means ProofLink
}

// Fact is one line of what a reviewer should know.
type Fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Proposal is the text to judge, and who wrote it. Without text there is none.
type Proposal struct {
	Text string `json:"text"`
	By   string `json:"by"` // a person, or the model as people know it
	AI   bool   `json:"ai"` // a model wrote it
}

// Labels are the words on the buttons; "" means the usual ones. Their meaning stays.
type Labels struct {
	Approve  string `json:"approve"`
	Reject   string `json:"reject"`
	SendBack string `json:"send_back"`
}

// Consequences say what each answer, and no answer, leads to.
type Consequences struct {
	Approve string `json:"approve"`
	Reject  string `json:"reject"`
	Silence string `json:"silence"`
}

// Person is somebody who is asked: a member by User, or anybody by Email. A member's
// address counts as that member.
type Person struct {
	User  tenants.UserID
	Email string
	Name  string
	Group string // the group or role that she is asked for; shown as the reason
}

// FieldType says what an editable field holds. The words are those of pipelines.
type FieldType string

// The types that a reviewer can edit. Values of any other type are shown only.
const (
	FieldText     FieldType = "text"
	FieldNumber   FieldType = "number"   // exact decimal
	FieldMoney    FieldType = "money"    // {"amount", "currency"}
	FieldDate     FieldType = "date"     // "2026-11-30"
	FieldDateTime FieldType = "datetime" // RFC 3339 with a zone
	FieldYesNo    FieldType = "yesno"
	FieldChoice   FieldType = "choice"
)

// EditableField is a value that a reviewer may change before approving.
type EditableField struct {
	Name     string          `json:"name"`
	Label    string          `json:"label"`
	Help     string          `json:"help"`
	Type     FieldType       `json:"type"`
	Required bool            `json:"required"`
	Long     bool            `json:"long"` // text of several lines
	Choices  []Choice        `json:"choices,omitempty"`
	Value    json.RawMessage `json:"value"` // as proposed; numbers keep their digits
}

// Choice is one of the values that a choice field may have.
type Choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Proof is how a reviewer shows who she is. A stronger one serves where a weaker one
// is asked for.
type Proof string

// The proofs, from light to strong.
const (
	ProofLink     Proof = "link"      // she holds the link that was mailed
	ProofLinkCode Proof = "link_code" // and typed a code that was mailed to the same address
	ProofSignIn   Proof = "sign_in"   // she is signed in as the member who is asked
)

func (p Proof) rank() int {
	switch p {
	case ProofLink:
		return 1
	case ProofLinkCode:
		return 2
	case ProofSignIn:
		return 3
	}
	return 0
}

func (p Proof) serves(asked Proof) bool { return p.rank() >= asked.rank() }
