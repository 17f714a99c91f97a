package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
)

// A step keeps as much of its calls as it says: the answer alone, all that came, or what
// was sent, too. What a failed try got is kept as well.
func TestKeepsOfACallWhatTheStepSays(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	h.work()
	for name, c := range map[string]struct {
		more           string
		sent, received bool
	}{
		"nothing said":          {"", false, true},
		"answer":                {`, "keep": "answer"`, false, false},
		"full":                  {`, "keep": "full"`, false, true},
		"request":               {`, "keep": "request"`, true, true},
		"as older documents do": {`, "keep_request": true`, true, true},
	} {
		servers[firstModel].Play(fakellm.Turn{Blank: true})
		servers[secondModel].Play(fakellm.Turn{Text: "an order"})
		run := h.start(h.publish(asksModels([]string{firstModel, secondModel}, c.more)), `{"n": 4711}`)
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State, "%s: %+v", name, p.Run.Failure)
		tries := h.attempts(p.Steps[0].ID)
		require.Len(t, tries, 2, name)
		for _, try := range tries {
			require.Equal(t, c.sent, !try.Sent.IsZero(), "%s: sent by try %d", name, try.Number)
			require.Equal(t, c.received, !try.Received.IsZero(), "%s: received by try %d", name, try.Number)
		}
		if c.sent {
			sent := h.value(tries[1].Sent)
			require.Contains(t, sent, "4711", name)
			require.NotContains(t, sent, "Bearer", name)
			require.True(t, json.Valid([]byte(sent)), name)
		}
		if c.received {
			require.Contains(t, h.value(tries[1].Received), "an order", name)
		}
	}
	h.requireSound()
}
