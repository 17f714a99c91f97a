package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// question looks up whom a draft asks and gives it the form that people are shown.
func (d *drive) question(ctx context.Context, tx tenants.Tx, open openReview) (review.Question, error) {
	draft, ask := open.draft, open.draft.ask
	members, err := tenants.Members(ctx, tx)
	if err != nil {
		return review.Question{}, err
	}
	q := review.Question{
		RunID: d.run.ID, StepRunID: open.step,
		PipelineName: d.run.PipelineName, RunName: d.run.Name,
		Title: draft.question, Body: draft.body,
		Labels:       review.Labels(ask.Labels),
		Consequences: review.Consequences{Approve: draft.approve, Reject: draft.reject, Silence: draft.silence},
		People:       people(draft.people, members),
		Policy:       review.Policy{Rule: review.Rule(ask.Rule), N: ask.N},
		Requester:    d.run.StartedBy, AllowRequester: ask.AllowRequester, SendBack: ask.SendBack,
		Due: draft.due, Proof: review.Proof(ask.Proof),
	}
	if q.Proposal, err = d.proposal(ctx, tx, ask, draft.proposal); err != nil {
		return q, err
	}
	if draft.round > 0 {
		if q.Round, err = nextRound(ctx, tx, open.step); err != nil {
			return q, err
		}
	}
	for _, fact := range draft.facts {
		q.Facts = append(q.Facts, review.Fact{Label: fact.label, Value: fact.value})
	}
	for _, editable := range draft.editable {
		q.Editable = append(q.Editable, editableField(editable))
	}
	return q, nil
}

// nextRound counts the question of a step run that may have asked before.
func nextRound(ctx context.Context, tx tenants.Tx, step StepRunID) (int, error) {
	var round int
	err := tx.QueryRow(ctx, `SELECT coalesce(max(round), 0) + 1 FROM reviews WHERE tenant_id = $1 AND step_run_id = $2`, tx.Tenant, step).Scan(&round)
	if err != nil {
		return 0, fmt.Errorf("count a step's questions: %w", err)
	}
	return round, nil
}

// proposal names who wrote the text that is judged: the model, where a step asked one.
func (d *drive) proposal(ctx context.Context, tx tenants.Tx, ask *pipeline.CompiledReview, text string) (review.Proposal, error) {
	writer := d.program.Node(ask.ProposalFrom)
	if writer == nil || writer.AI() == nil {
		return review.Proposal{Text: text}, nil
	}
	rows, err := stepRuns(ctx, tx, `tenant_id = $1 AND run_id = $2 AND step_id = $3 AND state = 'done' ORDER BY created_at DESC LIMIT 1`, tx.Tenant, d.run.ID, writer.ID())
	if err != nil {
		return review.Proposal{}, err
	}
	var wrote StepRun
	if len(rows) > 0 {
		wrote = rows[0]
	}
	if wrote.AnsweredByPeople() {
		return review.Proposal{Text: text}, nil
	}
	return review.Proposal{Text: text, By: wrote.Chain.model(writer), AI: true}, nil
}

func editableField(draft draftField) review.EditableField {
	field := review.EditableField{
		Name: draft.field.Name, Label: draft.field.Title(), Help: draft.field.Help,
		Type: review.FieldType(draft.field.Type), Required: draft.field.Required, Long: draft.field.Long, Value: draft.value,
	}
	for _, choice := range draft.field.Choices {
		field.Choices = append(field.Choices, review.Choice{Value: choice.Value, Label: choice.Title()})
	}
	return field
}

// people turns roles and addresses into those who are asked. A group that no member is
// in gives nobody.
func people(drafts []draftPerson, members []tenants.Membership) []review.Person {
	var out []review.Person
	for _, draft := range drafts {
		for _, email := range draft.emails {
			out = append(out, review.Person{Email: email})
		}
		for _, member := range members {
			named := draft.user != "" && (draft.user == member.User.ID.String() || strings.EqualFold(draft.user, member.User.Email))
			inRole := draft.role != "" && draft.role == string(member.Role)
			any := draft.everyone && member.Role.May(tenants.Decide)
			if named || inRole || any {
				out = append(out, review.Person{User: member.User.ID, Email: member.User.Email, Name: member.User.Name, Group: draft.role})
			}
		}
	}
	return out
}

// DecideReview records a person's answer and, once the review is over, sends its run
// on. Refusals are the errors of package review and change nothing.
func (e *Engine) DecideReview(ctx context.Context, tx tenants.Tx, decision review.Decision) (review.Result, error) {
	if err := lockRunOfSeat(ctx, tx, decision.Seat); err != nil {
		return review.Result{}, err
	}
	result, err := e.Reviews.Decide(ctx, tx, decision)
	if err != nil || !result.Closed || result.Repeated {
		return result, err
	}
	output, err := reviewOutput(result)
	if err != nil {
		return result, err
	}
	return result, e.wake(ctx, tx, waking{step: StepRunID(result.StepRunID), state: "done", output: output})
}

// lockRunOfSeat takes the run's lock before the review's, in the order in which a
// cancel takes them.
func lockRunOfSeat(ctx context.Context, tx tenants.Tx, seat review.SeatID) error {
	_, err := tx.Exec(ctx, `
		SELECT 1 FROM seats s
		JOIN reviews v ON v.tenant_id = s.tenant_id AND v.id = s.review_id
		JOIN runs r ON r.tenant_id = v.tenant_id AND r.id = v.run_id
		WHERE s.tenant_id = $1 AND s.id = $2 FOR SHARE OF r`, tx.Tenant, seat)
	if err != nil {
		return fmt.Errorf("lock a review's run: %w", err)
	}
	return nil
}

// reviewOutput is what formulas read of a review: verdict, comment, by, at, and each
// editable field as edited or as proposed.
func reviewOutput(result review.Result) ([]byte, error) {
	out := map[string]any{}
	for name, value := range result.Values {
		decoded, err := expr.DecodeJSON(value)
		if err != nil {
			return nil, fmt.Errorf("read the field %q of an answer: %w", name, err)
		}
		out[name] = decoded
	}
	out["verdict"] = string(result.Outcome)
	out["comment"] = result.Recorded.Comment
	out["by"] = result.Recorded.Name
	out["at"] = result.Recorded.At.UTC().Format("2006-01-02T15:04:05Z")
	return expr.EncodeJSON(out)
}

// expireReview ends a review whose deadline passed, as its step says. Silence approves
// only where the step says so, and the record says that it was silence.
func (e *Engine) expireReview(ctx context.Context, tx tenants.Tx, step StepRunID) error {
	if _, err := lockRunOf(ctx, tx, step); err != nil {
		return err
	}
	ask, id, err := e.openReviewOf(ctx, tx, step)
	if err != nil {
		return err
	}
	ended, err := e.Reviews.Close(ctx, tx, id, review.OutcomeTimeout)
	var early *review.NotDue
	if errors.As(err, &early) { // the mail went out late, so the time began late
		_, err := tx.Exec(ctx, `UPDATE waits SET due_at = $3 WHERE tenant_id = $1 AND step_run_id = $2 AND state = 'open'`,
			tx.Tenant, step, early.Due)
		return err
	}
	if err != nil || !ended {
		return err
	}
	w := waking{step: step, state: "expired"}
	verdict, goesOn := silenceMeans[ask.OnDeadline]
	if !goesOn {
		w.failure = &Failure{Class: ClassExpired, Message: "Nobody answered before the deadline, and silence never approves."}
		return e.wake(ctx, tx, w)
	}
	if w.output, err = e.silentOutput(ctx, tx, id, verdict); err != nil {
		return err
	}
	return e.wake(ctx, tx, w)
}

// silenceMeans are the verdicts that a step may give to silence; without one it fails.
var silenceMeans = map[pipeline.DeadlineAction]review.Outcome{
	pipeline.DeadlineApprove: pipeline.VerdictApproved, pipeline.DeadlineReject: pipeline.VerdictRejected,
	pipeline.DeadlineContinue: pipeline.VerdictTimeout,
}

// silentOutput is what formulas read of a review that nobody answered: every editable
// field as proposed, and a record that says it was silence.
func (e *Engine) silentOutput(ctx context.Context, tx tenants.Tx, id review.ID, verdict review.Outcome) ([]byte, error) {
	detail, err := e.Reviews.ByID(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	result := review.Result{Outcome: verdict, Recorded: review.Recorded{Name: "by timeout", At: tx.Now}, Values: map[string]json.RawMessage{}}
	for _, field := range detail.Content.Editable {
		result.Values[field.Name] = field.Value
	}
	return reviewOutput(result)
}

// openReviewOf finds the open review of a step run and the step's settings.
func (e *Engine) openReviewOf(ctx context.Context, tx tenants.Tx, step StepRunID) (*pipeline.CompiledReview, review.ID, error) {
	var id review.ID
	var run RunID
	var stepID string
	var chosen pipeline.ListKey
	err := tx.QueryRow(ctx, `
		SELECT v.id, s.run_id, s.step_id, s.chosen FROM reviews v
		JOIN step_runs s ON s.tenant_id = v.tenant_id AND s.id = v.step_run_id
		WHERE v.tenant_id = $1 AND v.step_run_id = $2 AND v.state = 'open'`, tx.Tenant, step).Scan(&id, &run, &stepID, &chosen)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, id, ErrNotWaiting
	}
	if err != nil {
		return nil, id, fmt.Errorf("find a step's review: %w", err)
	}
	owner, err := RunByID(ctx, tx, run)
	if err != nil {
		return nil, id, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, owner.PipelineID, owner.Version)
	if err != nil {
		return nil, id, err
	}
	return version.Program.Node(stepID).Asks(chosen), id, nil
}
