package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// passedOn asks a model, keeps its answer's field x through two steps, asks a person
// about it, and mails it.
const passedOn = `{
	"semantics": 1, "name": "Passed on", "run_name": "{{ input.name }}", "input": [{"name": "name", "type": "text"}],
	"steps": [
		{"id": "ask", "name": "Ask", "kind": "ai", "with": {"models": ["practice/standard"], "instructions": "Answer.", "prompt": "{{ input.name }}"}},
		{"id": "keep", "name": "Keep", "kind": "set", "with": {"values": [{"name": "x", "formula": "steps.ask.text"}]}},
		{"id": "keep2", "name": "Keep it again", "kind": "set", "with": {"values": [{"name": "x", "formula": "steps.keep.x"}]}},
		{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Is it {{ steps.keep2.x }}?", "body": "{{ steps.keep2.x }}",
			"facts": [{"label": "Answer", "formula": "steps.keep2.x"}], "proposal": {"text": "{{ steps.keep2.x }}"},
			"editable": [{"field": {"name": "text", "type": "text"}, "formula": "input.name"}], "people": [{"email": "rita@example.com"}]}},
		{"id": "tell", "name": "Tell", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "It is {{ steps.keep2.x }}", "body": "{{ steps.keep2.x }}"}}
	],
	"result": [{"name": "x", "formula": "steps.keep2.x"}]
}`

// Whatever a model answers, the run ends, and the value comes out as it went in.
func TestCasesS29ToS33HostileAnswersGoThroughUnchanged(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		for name, value := range hostileValues {
			if strings.Contains(string(call.Input), "«"+name+"»") {
				return engine.Reply{Output: []byte(`{"text": ` + value + `}`), Note: "nul \x00 and \xff\xfe " + name, Bill: &engine.Bill{Unknown: true, Finish: "\x00\xff"}}
			}
		}
		return engine.Reply{}
	})})
	h.work()
	id := h.publish(passedOn)
	runs := map[string]engine.RunID{}
	for name := range hostileValues {
		runs[name] = h.start(id, `{"name": "«`+name+`» \u0000 \ud800 <script>alert(1)</script>\r\n`+strings.Repeat("é", 500)+`"}`)
	}
	for name, run := range runs {
		_, step := h.awaitWait(run, engine.WaitReview)
		h.decide(step, review.Approve, "fine \x00")
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State, "%s: %+v", name, p.Run.Failure)
		require.Equal(t, `{"x":`+hostileValues[name]+`}`, h.value(p.Run.Result), name)
		require.Equal(t, "nul \ufffd and \ufffd\ufffd "+name, p.Steps[0].Note)
		require.LessOrEqual(t, len(p.Run.Name), 210)
		require.NotContains(t, p.Run.Name, "\x00")
	}
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		require.Len(t, page.Lines, len(hostileValues))
		return err
	})
	h.requireSound()
}

var hostileValues = map[string]string{
	"S29 nul":     `"a\u0000b"`,
	"S32 half":    `"lone \ud83d half"`,
	"S32 whole":   `"😀é"`,
	"S30 visible": `"the text \\u0000 about JSON"`,
	"S33 big":     `9007199254740993`,
	"S33 bigger":  `123456789012345678901234567890`,
	"S33 exact":   `0.10`,
	"S29 key":     `{"a\u0000b":1}`,
	"S31 long":    `"` + strings.Repeat("😀é", 5000) + `"`,
	"S36 deep":    strings.Repeat("[", 100) + strings.Repeat("]", 100),
	"markup":      `"<b>&amp;</b>  "`,
	"backslash":   `"\\"`,
}

// An answer that cannot be handed on fails the step at once, in plain words; what it
// cost is booked, and nothing is tried again.
func TestCasesS34ToS36AnswersThatCannotBeHandedOnFailAtOnce(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]struct{ output, class string }{
		"S36 too deep":       {`{"x": ` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, engine.ClassFormula},
		"S36 closed":         {strings.Repeat("[", 5<<20) + strings.Repeat("]", 5<<20), engine.ClassFormula},
		"S35 40 MB":          {`"` + strings.Repeat("x", 40<<20) + `"`, engine.ClassTooLarge},
		"S36 brackets":       {strings.Repeat("[", 10<<20), engine.ClassFormula},
		"S35 just too large": {`"` + strings.Repeat("x", engine.MaxValue) + `"`, engine.ClassTooLarge},
		"no JSON":            {"Sure! Here is your answer \x00\xff", engine.ClassFormula},
		"S34 NaN":            {`{"x": NaN}`, engine.ClassFormula},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &calls{}
			h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
				seen.add(call.Key)
				return engine.Reply{Output: []byte(bad.output), Bill: &engine.Bill{Unknown: true}}
			})})
			h.work()
			p := h.awaitEnd(h.start(h.publish(oneQuestion), `{"n": 1}`))
			require.Equal(t, engine.RunFailed, p.Run.State)
			require.Equal(t, bad.class, p.Run.Failure.Class)
			require.NotEmpty(t, p.Run.Failure.Message)
			if bad.class == engine.ClassTooLarge {
				require.Contains(t, p.Run.Failure.Message, "32 MiB")
			}
			require.Less(t, len(p.Run.Failure.Message), 1000)
			require.Equal(t, 1, seen.all()[p.Steps[0].ID.String()])
			require.Positive(t, p.Steps[0].CostMicros)
			h.requireSound()
		})
	}
}

// The largest value there may be is stored, read and handed on byte for byte.
func TestLargestValueIsHandedOn(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", (engine.MaxValue-100)/16)
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Output: []byte(`{"text":"` + text + `"}`)}
	})})
	h.work()
	p := h.awaitEnd(h.start(h.publish(oneQuestion), `{"n": 1}`))
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, engine.DigestOf([]byte(`{"text":"`+text+`"}`)), engine.DigestOf([]byte(h.value(p.Steps[0].Output))))
}

// The words of another side's failure are kept as far as the database takes them, and
// text that only speaks of an escape stays as it is.
func TestHostileFailuresAreKept(t *testing.T) {
	t.Parallel()
	hostile := "nul \x00, half \xed\xa0\x80, broken \xff, visible \\u0000"
	kept := "nul \ufffd, half \ufffd, broken \ufffd, visible \\u0000"
	h := build(t, mailCaller(func(context.Context, engine.Call) engine.Reply {
		return engine.Reply{Retryable: true, Note: hostile, Failure: &engine.Failure{Class: "odd", Message: hostile, Detail: hostile + strings.Repeat("é", 1<<20)}}
	}))
	h.work()
	run := h.start(h.publish(oneMail), `{"n": 1}`)
	p, step := h.awaitWait(run, engine.WaitRetry)
	require.Equal(t, kept, p.Waits[step].Reason)
	p = h.awaitEnd(run)
	require.Equal(t, kept, p.Run.Failure.Message)
	require.Equal(t, kept, p.Steps[0].Note)
	require.True(t, strings.HasPrefix(p.Run.Failure.Detail, kept))
	require.Less(t, len(p.Run.Failure.Detail), 20<<10)
	require.Len(t, h.attempts(step), 3)
}

// A review that asks the same people by several ways gives each one seat; one that
// asks a role without members fails with a reason.
func TestReviewAsksEachPersonOnce(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	h.work()
	owner := h.owner.String()
	run := h.start(h.publish(fmt.Sprintf(`{"semantics": 1, "name": "Again and again", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "check", "name": "Check", "kind": "review", "with": {"question": "Well?", "allow_requester": true,
			"people": [{"role": "owner"}, {"user": "%s"}, {"email": "%s@example.com"}, {"everyone": true}, {"email": "rita@example.com, RITA@example.com"}]}}]}`, owner, owner)), `{"n": 1}`)
	_, step := h.awaitWait(run, engine.WaitReview)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		require.Len(t, detail.Seats, 2)
		return err
	})
}
