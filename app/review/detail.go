package review

import (
	"slices"
	"time"

	"tollgate/tenants"
)

// Detail is a review with its seats and all answers.
type Detail struct {
	ID             ID
	RunID          [16]byte
	StepRunID      [16]byte
	Content        Content
	Digest         []byte // an answer must name it
	Policy         Policy
	Proof          Proof
	Requester      tenants.UserID
	AllowRequester bool
	SendBack       bool
	OpenedAt       time.Time
	DueAt          *time.Time // moved on by the time until somebody could answer
	Outcome        Outcome    // "" while open
	ClosedAt       *time.Time
	Seats          []SeatRow
	Answers        []Recorded // in the order in which they came
	Now            time.Time  // the database's clock when this was read
}

// SeatState says what became of a seat.
type SeatState string

// The states of a seat.
const (
	SeatOpen     SeatState = "open"
	SeatAnswered SeatState = "answered"
	SeatClosed   SeatState = "closed" // others decided, or the review was closed
)

// SeatRow is one person's place in a review.
type SeatRow struct {
	ID         SeatID
	Group      string
	User       tenants.UserID // zero for somebody from outside
	Address    string
	Name       string
	Zone       string
	Generation int // of the link
	ExpiresAt  time.Time
	State      SeatState
	Member     bool // she is a member of the workspace now

	tokenHash []byte
}

// Open tells whether the review still waits for answers.
func (d Detail) Open() bool { return d.Outcome == "" }

// Needed is how many people must agree.
func (d Detail) Needed() int { return d.Policy.Needs(len(d.Seats)) }

// Agreed is how many people have approved so far.
func (d Detail) Agreed() int {
	n := 0
	for _, answer := range d.Answers {
		if answer.Verdict == Approve || answer.Verdict == ApproveWithEdits {
			n++
		}
	}
	return n
}

// CanEdit tells whether an approval may change the editable fields. Where several
// people must agree nobody may: the others would have agreed to something else.
func (d Detail) CanEdit() bool { return len(d.Content.Editable) > 0 && d.Needed() == 1 }

// SeatByID finds a seat.
func (d Detail) SeatByID(id SeatID) (SeatRow, bool) {
	return d.seat(func(s SeatRow) bool { return s.ID == id })
}

// SeatOf finds the seat of a member.
func (d Detail) SeatOf(user tenants.UserID) (SeatRow, bool) {
	if user.IsZero() {
		return SeatRow{}, false
	}
	return d.seat(func(s SeatRow) bool { return s.User == user })
}

func (d Detail) seat(is func(SeatRow) bool) (SeatRow, bool) {
	if i := slices.IndexFunc(d.Seats, is); i >= 0 {
		return d.Seats[i], true
	}
	return SeatRow{}, false
}

// AnswerOf finds what was answered from a seat.
func (d Detail) AnswerOf(seat SeatID) (Recorded, bool) {
	i := slices.IndexFunc(d.Answers, func(a Recorded) bool { return a.Seat == seat })
	if i < 0 {
		return Recorded{}, false
	}
	return d.Answers[i], true
}

// pastDue tells whether the time to answer is over.
func (d Detail) pastDue() bool { return d.DueAt != nil && !d.Now.Before(*d.DueAt) }
