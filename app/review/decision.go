package review

import (
	"encoding/json"
	"time"

	"tollgate/tenants"
)

// Viewer is whoever looks at a seat or answers for it, with all that she has proved.
type Viewer struct {
	Token       string         // from the link she came by; empty if she came otherwise
	User        tenants.UserID // who she is signed in as; zero if she is not
	CodeChecked bool           // a code mailed to the seat's address was typed in this browser
	Client      string         // network address, for the record
}

// Decision is an answer on its way in.
type Decision struct {
	Seat    SeatID
	Viewer  Viewer
	Digest  []byte // of what was shown, as the page got it
	Verdict Verdict
	Comment string
	Edits   map[string]json.RawMessage // by field; those equal to the proposal do not count
}

// Recorded is an answer as it is kept for ever.
type Recorded struct {
	ID      AnswerID
	Seat    SeatID
	Verdict Verdict
	Comment string
	Edits   map[string]json.RawMessage
	Digest  []byte
	Proof   Proof
	User    tenants.UserID // who was signed in; zero for a bare link
	Name    string         // of the seat's person at that time
	Address string
	Client  string
	At      time.Time
}

// Result is what an answer led to.
type Result struct {
	Review    ID
	RunID     [16]byte
	StepRunID [16]byte
	Closed    bool    // the review is over
	Outcome   Outcome // approved, rejected or sent_back once it is over
	Repeated  bool    // this very answer was recorded before; nothing was changed now
	Recorded  Recorded
	Values    map[string]json.RawMessage // every editable field, as edited or as proposed
}
