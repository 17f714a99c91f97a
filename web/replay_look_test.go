package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// chained is a run whose step asked two models, with what the provider said.
func (s *site) chained() engine.RunID {
	s.t.Helper()
	document := askDocument("Replies to customers")
	ask := document.Steps[0].With.(*pipeline.AI)
	ask.Models = []string{"practice/standard", "openai/gpt-5.6-terra"}
	s.calls.say(engine.Reply{Failure: &engine.Failure{Class: "context_too_long", Message: "The prompt is too long for this model.", Detail: "maximum context length is 8,192 tokens <b>"}, Received: []byte(`{"error":{"code":"context_length_exceeded"}}`)})
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": "Refund of Ms Oduya"})
	s.work()
	return run.ID
}

// What a chain of models did, and both answers of a replay, in every width and theme.
func TestTheLookOfChainsAndReplays(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	twoModels(&s.web.Config)
	run := s.answeredBefore("Dear Ms Oduya, thank you for your message of Tuesday. We are sorry that the lid arrived broken, and refund you €420 today.")
	b, path := s.in(tenants.Builder), s.at("runs", run.String(), "replay", s.stepOf(run, "draft").ID.String())
	to := b.post(path, append(b.get(path).seen(), "model", "openai/gpt-5.6-terra")...).is(http.StatusSeeOther).header.Get("Location")
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya, thank you for your message of Tuesday. We are sorry that the lid arrived broken, and send you a new one tomorrow."}`),
		Bill: &engine.Bill{Model: "gpt-5.6-terra", Tokens: ledger.Tokens{Input: 1000, Output: 100}, Latency: 2 * time.Second}})
	s.replays()
	pages := map[string]string{"replay-ask": path, "replay": to, "chain": s.at("runs", s.chained().String(), "steps", "draft")}
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Builder)
			for name, path := range pages {
				p.Go(s.web.origin + path)
				p.Shot("chain-" + name)
				p.Check(t)
			}
		})
	}
	require.NotEmpty(t, to)
}
