package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

var noAnswer = engine.Reply{Unsure: true, Failure: &engine.Failure{Class: "timeout", Message: "erp.example.com did not answer in time.", Detail: "no answer after 1m"}}

// ordering is a site with a run that posts an order, whose call comes to the reply.
func (s *site) ordering(reply engine.Reply) engine.RunID {
	s.t.Helper()
	if len(s.secretIDs()) == 0 {
		s.in(tenants.Owner).post(s.at("secrets", "add"), "name", "ERP key", "value", typedSecret, "hosts", "").is(http.StatusSeeOther)
	}
	s.calls.say(reply)
	run := s.start(s.home, s.publish(s.home, parsed(s.t, orderDocument)), map[string]string{"n": "7"}).ID
	s.work()
	return run
}

func (s *site) reviewOf(run engine.RunID) string {
	s.t.Helper()
	id := ""
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, run)
		if err != nil {
			return err
		}
		detail, err := s.reviews.ByStepRun(ctx, tx, progress.Steps[0].ID)
		id = detail.ID.String()
		return err
	})
	return id
}

// Where nobody can tell whether a call arrived, the run says so, asks, and tells in the end
// who said what.
func TestACallThatMayHaveArrivedIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.ordering(noAnswer)
	owner, path := s.in(tenants.Owner), s.at("runs", run.String())
	owner.get(path).is(http.StatusOK).says("Post the order: did it arrive?", "Nobody can tell whether it arrived.", "Nothing is sent again before that", "Who was asked", "did not answer in time", "no deadline",
		"Signed in with", "the secret “ERP key”", "POST https://erp.example.com/orders").hides(typedSecret, "made again with the same key")
	review := s.at("reviews", s.reviewOf(run))
	page := owner.get(review).is(http.StatusOK).says("It arrived: go on with the answer below", "It did not arrive: send it", "It is not sent again unless you say so", "Go on as chosen", "Let it fail")
	page.answer("choice", "approve").is(http.StatusUnprocessableEntity).says("There is 1 thing to fix")
	s.calls.say(engine.Reply{Output: []byte(`{"status": 200, "headers": {}, "body": null}`)})
	owner.get(review).answer("choice", "approve", "edit.arrived", "arrived", "edit.answer", `{"no": 12}`).is(http.StatusSeeOther)
	s.work()
	owner.get(s.at("runs", run.String(), "steps", "post")).is(http.StatusOK).says("said that it had arrived, so it was not sent again", "said whether it had arrived", "Failed: erp.example.com did not answer in time")
}

func TestACallThatFailsIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.ordering(engine.Reply{Failure: &engine.Failure{Class: "invalid_request", Message: "erp.example.com answered 422 (Unprocessable Entity): it does not take what was sent.", Detail: "HTTP 422\nno such article"}})
	s.in(tenants.Viewer).get(s.at("runs", run.String())).is(http.StatusOK).
		says("it does not take what was sent", "Technical detail", "no such article", "What this step does", "it asks a person before anything is sent again")
	require.NotContains(t, s.log.String(), "no such article")
}

func TestTheLookOfCallsToOtherSystems(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	asking := s.ordering(noAnswer)
	review := s.reviewOf(asking)
	failed := s.ordering(engine.Reply{Failure: &engine.Failure{Class: "invalid_request", Detail: "HTTP 422 (Unprocessable Entity)\n{\"error\": \"no such article\"}",
		Message: "erp.example.com answered 422 (Unprocessable Entity): it does not take what was sent. Trying again would fail the same way, so we stopped. Check the data and the address of this step; what it said stands under “Technical detail”."}})
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			for name, path := range map[string]string{
				"call-unsure": s.at("runs", asking.String()), "call-question": s.at("reviews", review), "call-failed": s.at("runs", failed.String()),
			} {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
		})
	}
}
