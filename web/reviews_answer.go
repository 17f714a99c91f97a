package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"tollgate/app/review"
	"tollgate/tenants"
)

// Names of the form's fields.
const (
	choiceField  = "choice"
	commentField = "comment"
	digestField  = "digest"
	keyField     = "key"
	showField    = "show"
)

// answer is the form of a review as it came, so that it can be shown again as it was.
type answer struct {
	Verdict review.Verdict
	Comment string
	Typed   map[string]string // by the name of the field that may be edited
	digest  string            // of what the person looked at
	key     string
	show    bool // she wants to see her changes and decides nothing yet
}

// readAnswer reads the form. Only what was posted counts: a choice in the address is a
// wish of the mail's writer and decides nothing.
func (v *visit) readAnswer(d review.Detail) (answer, error) {
	form, err := v.posted()
	if err != nil {
		return answer{}, err
	}
	a := answer{
		Verdict: review.Verdict(form.Get(choiceField)), Comment: form.Get(commentField),
		Typed: map[string]string{}, digest: form.Get(digestField), key: form.Get(keyField), show: form.Has(showField),
	}
	for _, e := range editors(d, nil) {
		if typed, ok := first(form, e.formName()); ok {
			a.Typed[e.Name] = typed
		}
	}
	return a, nil
}

// posted is the body of a form. One that cannot be read is the sender's mistake.
func (v *visit) posted() (url.Values, error) {
	err := v.Request().ParseForm()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); err != nil && !tooLarge {
		err = echo.NewHTTPError(http.StatusBadRequest).SetInternal(err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the form: %w", err)
	}
	return v.Request().PostForm, nil
}

func first(form url.Values, name string) (string, bool) {
	if values := form[name]; len(values) > 0 {
		return values[0], true
	}
	return "", false
}

// edits gives what was changed, or *review.Invalid with every field that cannot be
// read.
func (a answer) edits(all []editor) (map[string]json.RawMessage, error) {
	edits := map[string]json.RawMessage{}
	var problems []review.FieldProblem
	for _, e := range all {
		typed, ok := a.Typed[e.Name]
		if !ok {
			continue
		}
		value, changed, err := e.read(typed)
		if err != nil {
			problems = append(problems, review.FieldProblem{Field: e.Name, Message: err.Error()})
		} else if changed {
			edits[e.Name] = value
		}
	}
	if len(problems) > 0 {
		return nil, &review.Invalid{Problems: problems}
	}
	return edits, nil
}

// shown is the same page with the changes that she made so far, and its status.
func (a asking) shown() (int, asking) {
	_, err := a.given.edits(a.editors())
	a.compared, a.faults = true, faultsOf(err)
	return statusOfRefusal(err), a
}

// decide gives an answer to the engine, and puts it on record in the same transaction.
// The same answer again is as good as the first and adds nothing.
func (v *visit) decide(a asking, given answer) error {
	decision := review.Decision{Seat: a.Seat.ID, Viewer: a.viewer, Verdict: given.Verdict, Comment: given.Comment}
	decision.Digest, _ = hex.DecodeString(given.digest) // what is no digest fits to nothing
	if given.Verdict == review.Approve {
		var err error
		if decision.Edits, err = given.edits(a.editors()); err != nil {
			return err
		}
	}
	err := v.s.DB.InTx(v.ctx(), a.Tenant, func(ctx context.Context, tx tenants.Tx) error {
		result, err := v.s.Engine.DecideReview(ctx, tx, decision)
		if err != nil || result.Repeated {
			return err
		}
		return v.auditDecision(ctx, tx, result)
	})
	v.saved = err == nil
	return err
}

// auditDecision says who answered, and no more than is known: whoever came by a bare
// link is only the holder of what was sent to an address.
func (v *visit) auditDecision(ctx context.Context, tx tenants.Tx, result review.Result) error {
	recorded := result.Recorded
	actor := tenants.ByLink(recorded.Seat, recorded.Address)
	if recorded.Proof == review.ProofSignIn {
		member, err := tenants.MemberByUser(ctx, tx, recorded.User)
		if err != nil {
			return err
		}
		actor = tenants.ByMember(member)
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: actor, Action: "review.decided", Target: tenants.Target{Kind: "review", ID: result.Review},
		Detail: map[string]any{
			"verdict": recorded.Verdict, "proof": recorded.Proof, "outcome": result.Outcome, "run": tenants.IDOf[any](result.RunID),
		},
	})
}

// faults are the messages beside the fields of a refused answer, by field.
func faultsOf(err error) map[string]string {
	invalid, ok := errors.AsType[*review.Invalid](err)
	if !ok {
		return nil
	}
	faults := map[string]string{}
	for _, problem := range invalid.Problems {
		if faults[problem.Field] == "" {
			faults[problem.Field] = problem.Message
		}
	}
	return faults
}
