package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"tollgate/tenants"
)

// maxComment bounds a comment, in characters.
const maxComment = 5000

// Decide records an answer and tells what it led to. It holds the review's lock until
// the caller's transaction ends, so of two answers at once the second sees the first.
//
// The same answer from the same seat again is no error: it gives what was recorded,
// with Repeated set. Refusals are the errors of this package; they record nothing.
func (r *Room) Decide(ctx context.Context, tx tenants.Tx, decision Decision) (Result, error) {
	id, err := lockOfSeat(ctx, tx, decision.Seat)
	if err != nil {
		return Result{}, err
	}
	detail, err := r.load(ctx, tx, id)
	if err != nil {
		return Result{}, err
	}
	seat, _ := detail.SeatByID(decision.Seat)
	answer, err := detail.answer(seat, decision)
	var settled *Settled
	if errors.As(err, &settled) && settled.Own {
		return detail.repeat(seat, answer, err)
	}
	if err != nil {
		return Result{}, err
	}
	return detail.record(ctx, tx, answer)
}

// answer judges who answers and checks what she answers. When the seat has answered
// before it gives both the new answer and *Settled.
func (d Detail) answer(seat SeatRow, decision Decision) (Recorded, error) {
	proof, refusal := d.judge(seat, decision.Viewer)
	if refusal != nil && proof == "" {
		return Recorded{}, refusal
	}
	if refusal == nil && !bytes.Equal(decision.Digest, d.Digest) {
		return Recorded{}, ErrChanged
	}
	answer := Recorded{
		ID: tenants.NewID[Answer](), Seat: seat.ID, Verdict: decision.Verdict,
		Comment: strings.TrimSpace(text(decision.Comment)), Edits: map[string]json.RawMessage{},
		Digest: d.Digest, Proof: proof, User: decision.Viewer.User, Name: seat.Name,
		Address: seat.Address, Client: line(decision.Viewer.Client), At: d.Now,
	}
	if err := d.checkVerdict(answer); err != nil {
		return Recorded{}, errors.Join(refusal, err)
	}
	if answer.Verdict == Approve || answer.Verdict == ApproveWithEdits {
		edits, err := d.checkEdits(decision.Edits)
		if err != nil {
			return Recorded{}, errors.Join(refusal, err)
		}
		answer.Edits = edits
		answer.Verdict = Approve
		if len(edits) > 0 {
			answer.Verdict = ApproveWithEdits
		}
	}
	return answer, refusal
}

func (d Detail) checkVerdict(answer Recorded) error {
	switch {
	case !answer.Verdict.known():
		return invalid("verdict", "Choose one of the answers.")
	case answer.Verdict == SendBack && !d.SendBack:
		return invalid("verdict", "This review cannot be sent back. Approve it or reject it.")
	case (answer.Verdict == Reject || answer.Verdict == SendBack) && answer.Comment == "":
		return invalid("comment", "Say why, so that the next person knows what to change.")
	case len([]rune(answer.Comment)) > maxComment:
		return invalid("comment", fmt.Sprintf("Shorten the comment to %d characters.", maxComment))
	}
	return nil
}

// repeat gives the recorded answer if the new one is the same, else the refusal.
func (d Detail) repeat(seat SeatRow, answer Recorded, refusal error) (Result, error) {
	recorded, _ := d.AnswerOf(seat.ID)
	same := recorded.Verdict == answer.Verdict && recorded.Comment == answer.Comment &&
		maps.EqualFunc(recorded.Edits, answer.Edits, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if !same {
		return Result{}, refusal
	}
	result := d.result(recorded)
	result.Repeated = true
	return result, nil
}

func (d Detail) record(ctx context.Context, tx tenants.Tx, answer Recorded) (Result, error) {
	verdicts := make([]Verdict, 0, len(d.Answers)+1)
	for _, earlier := range d.Answers {
		verdicts = append(verdicts, earlier.Verdict)
	}
	d.Outcome = tally(d.Policy, len(d.Seats), append(verdicts, answer.Verdict))
	if err := insertAnswer(ctx, tx, d.ID, answer); err != nil {
		return Result{}, err
	}
	if d.Outcome != "" {
		if err := closeReview(ctx, tx, d.ID, d.Outcome); err != nil {
			return Result{}, err
		}
	}
	return d.result(answer), nil
}

func (d Detail) result(answer Recorded) Result {
	values := make(map[string]json.RawMessage, len(d.Content.Editable))
	for _, field := range d.Content.Editable {
		values[field.Name] = field.Value
	}
	maps.Copy(values, answer.Edits)
	return Result{
		Review: d.ID, RunID: d.RunID, StepRunID: d.StepRunID, Closed: !d.Open(), Outcome: d.Outcome,
		Recorded: answer, Values: values,
	}
}
