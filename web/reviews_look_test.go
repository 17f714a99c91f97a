package web

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// refundDocument asks with everything a question can have: facts, a text of a model,
// fields of every kind to edit, a deadline and own words for the answers.
func refundDocument(people ...pipeline.Person) pipeline.Document {
	document := askingDocument("Refunds, checked by a person")
	due := pipeline.Duration(49 * time.Hour)
	document.Steps = []pipeline.Step{
		{ID: "draft", Name: "Draft the answer", Kind: pipeline.KindAI, With: &pipeline.AI{
			Models: []string{"practice/standard"}, Instructions: "Answer the customer.", Prompt: "{{ input.topic }}",
			Answer: []pipeline.Field{{Name: "reply", Type: pipeline.TypeText, Long: true}},
		}},
		{ID: "ask", Name: "Ask for the refund", Kind: pipeline.KindReview, With: &pipeline.Review{
			Question: "Refund {{ input.topic }} to J. Smith?",
			Body:     "The lamp arrived broken, with a photo of it. The customer asks for her money.",
			Facts: []pipeline.Fact{
				{Label: "Order", Formula: `"NL-2026-118204"`}, {Label: "Topic", Formula: "input.topic"}, {Label: "Empty", Formula: `""`},
			},
			Proposal: &pipeline.Proposal{Text: "{{ steps.draft.reply }}", From: "draft"},
			Editable: []pipeline.Editable{
				{Field: pipeline.Field{Name: "reply", Label: "Answer to the customer", Type: pipeline.TypeText, Long: true, Required: true}, Formula: "steps.draft.reply"},
				{Field: pipeline.Field{Name: "amount", Label: "Amount", Type: pipeline.TypeMoney, Help: "Paid: €420.00"}, Formula: `{"amount": "420.00", "currency": "EUR"}`},
				{Field: pipeline.Field{Name: "goodwill", Label: "A voucher too?", Type: pipeline.TypeYesNo}, Formula: "false"},
			},
			People: people,
			Labels: pipeline.Labels{Approve: "Refund it", Reject: "Do not refund"},
			Due:    &due, OnDeadline: pipeline.DeadlineReject,
			Consequences: pipeline.Consequences{
				Approve: "The money is paid today and the answer goes out.", Reject: "Nothing is paid. The service team gets the case with your comment.",
				Silence: "After two days the case goes to the service team, unanswered.",
			},
		}},
	}
	return document
}

const draftReply = "Dear Ms Smith,\n\nwe are sorry that the lamp arrived broken. You get your money back within three days.\nSee https://example.com/returns for the return.\n\nKind regards\nNordlicht"

// drafted is what the model of refundDocument answers.
func drafted(reply string) engine.Reply {
	output, err := json.Marshal(map[string]string{"reply": reply})
	if err != nil {
		panic(err)
	}
	return engine.Reply{Output: output, Bill: &engine.Bill{Model: "practice/standard"}}
}

var outsider = pipeline.Person{Email: "k.woelfing@rostock-gutachter.example"}

// overdue moves the deadline of a review into the past.
func (s *site) overdue(id review.ID) {
	s.t.Helper()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE reviews SET due_at = now() - interval '2 hours' WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id)
		return err
	})
}

// decided answers a link in a browser of its own.
func (s *site) decided(link string, pairs ...string) {
	s.t.Helper()
	s.visitor().get(link).answer(pairs...).leadsTo(link)
	s.work()
}

// Every page around a review passes the checks of a browser and of axe on a phone and
// on a desk, light and dark.
func TestTheLookOfReviews(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.calls.say(drafted(draftReply))
	role := func(r tenants.Role) pipeline.Person { return pipeline.Person{Role: string(r)} }
	refund := func(topic string, people ...pipeline.Person) (string, review.Detail) {
		return s.asked(refundDocument(people...), topic)
	}
	links := map[string]string{}
	links["link-question"], _ = refund("€420.00", outsider)
	links["link-hostile"], _ = refund(hostile, outsider)
	links["link-approved"], _ = refund("€12.00", outsider)
	s.decided(links["link-approved"], "choice", "approve", "edit.amount", "13.50", "edit.reply", "We pay.", "edit.goodwill", "true")
	links["link-rejected"], _ = refund("€9,800.00", outsider)
	s.decided(links["link-rejected"], "choice", "reject", "comment", "The photo shows another lamp.\nAsk again.")
	link, detail := refund("€77.00", role(tenants.Reviewer), role(tenants.Owner))
	links["link-by-others"] = "/r/" + s.secret.SeatToken(detail.Seats[1].ID, 1)
	s.decided(link, "choice", "approve")
	links["link-expired"], detail = refund("€5.00", outsider)
	s.overdue(detail.ID)
	links["link-cancelled"], detail = refund("€6.00", outsider)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		return s.engine.Cancel(ctx, tx, detail.RunID, "Ben Okonkwo")
	})
	s.work()
	links["link-unknown"] = "/r/AAAA"
	signIn := refundDocument(role(tenants.Reviewer))
	signIn.Steps[1].With.(*pipeline.Review).Proof = pipeline.ProofSignIn
	links["link-sign-in"], _ = s.asked(signIn, "€1,000.00")
	quorum := refundDocument(role(tenants.Reviewer), role(tenants.Owner), role(tenants.Admin))
	quorum.Steps[1].With.(*pipeline.Review).Policy = pipeline.Policy{Rule: pipeline.PolicyN, N: 2}
	links["link-quorum"], detail = s.asked(quorum, "€2,000.00")
	pages := map[string]string{"review-quorum": detail.ID.String()}
	_, detail = refund("€33.00", role(tenants.Owner))
	pages["review-question"] = detail.ID.String()
	_, detail = refund("€44.00", role(tenants.Reviewer))
	pages["review-others"] = detail.ID.String()
	// Tabs share their cookies, so all views are done as one person before the next.
	each := func(name string, look func(t *testing.T, p *browsertest.Page)) {
		t.Run(name, func(t *testing.T) {
			for _, view := range browsertest.Views {
				t.Run(view.String(), func(t *testing.T) {
					t.Parallel()
					look(t, chromium.Open(t, view))
				})
			}
		})
	}
	shot := func(t *testing.T, p *browsertest.Page, name, path string) {
		p.Go(s.web.origin + path)
		p.Shot(name)
		p.Check(t)
	}
	each("stranger", func(t *testing.T, p *browsertest.Page) {
		for name, link := range links {
			if name == "link-unknown" || name == "link-sign-in" {
				lostPage(t, p, s.web.origin+link, name)
				continue
			}
			shot(t, p, name, link)
		}
		p.Go(s.web.origin + links["link-question"] + "?choice=reject")
		p.Press(`[data-testid="decide"]`)
		p.AwaitElement(`[data-testid="faults"]`)
		p.Shot("link-faults")
		require.Empty(t, p.Axe())
		press := func(name, script, button, wait string) {
			p.Go(s.web.origin + links["link-question"] + "?choice=approve")
			browsertest.Eval[bool](p, script+"; true")
			p.Press(button)
			p.AwaitElement(wait)
			p.Shot(name)
			require.Empty(t, p.Axe())
			require.Empty(t, p.Overflow())
		}
		press("link-changes", `document.querySelector("[name='edit.reply']").value += "\n\nP.S. A voucher is in the parcel."; document.querySelector("[name='edit.amount']").value = "410.00"`,
			`[data-testid="show-changes"]`, `[data-testid="changes"]`)
		press("link-changed", `document.querySelector("[name=digest]").value = "00"`, `[data-testid="decide"]`, `.notice`)
		press("link-no-cookie", `document.querySelector("[name=key]").value = ""`, `[data-testid="decide"]`, `.notice`)
	})
	each("owner", func(t *testing.T, p *browsertest.Page) {
		become(p, s, tenants.Owner)
		shot(t, p, "inbox", s.at("reviews"))
		for name, id := range pages {
			shot(t, p, name, s.at("reviews", id))
		}
	})
	each("requester", func(t *testing.T, p *browsertest.Page) {
		become(p, s, tenants.Builder)
		shot(t, p, "inbox-empty", s.at("reviews"))
		shot(t, p, "review-requester", s.at("reviews", pages["review-others"]))
		lostPage(t, p, s.web.origin+links["link-quorum"], "link-requester")
	})
	require.Equal(t, http.StatusOK, s.visitor().get(links["link-question"]).status, "looking burned nothing")
}
