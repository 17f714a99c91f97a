package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/jobs"
)

// The models of a chain, in its order. The last is set up and has no price.
const (
	firstModel  = "openai/gpt-5.6-terra"
	secondModel = "anthropic/claude-sonnet-5"
	thirdModel  = "google/gemini-3.8-flash"
	noPrice     = "openai/gpt-6-astra"
)

// chainHouse is a house whose steps ask three models of three providers.
func chainHouse(t *testing.T) (*house, map[string]*fakellm.Server) {
	t.Helper()
	servers := map[string]*fakellm.Server{}
	var entries []llm.Entry
	for i, model := range []string{firstModel, secondModel, thirdModel} {
		server := fakellm.New(uint64(i) + 1)
		listening := httptest.NewServer(server)
		t.Cleanup(func() { server.Close(); listening.Close() })
		client, err := llm.NewHTTP(listening.Listener.Addr().String())
		require.NoError(t, err)
		provider, err := llm.NewOpenAI(llm.Config{BaseURL: listening.URL + "/v1", Key: llm.FixedKey("sk"), HTTP: client})
		require.NoError(t, err)
		prefix, name, _ := strings.Cut(model, "/")
		models := []string{name}
		if prefix == "openai" {
			models = append(models, strings.TrimPrefix(noPrice, "openai/"))
		}
		entries = append(entries, llm.OpenAIEntry(prefix, provider, models...))
		servers[model] = server
	}
	registry, err := llm.NewRegistry(entries...)
	require.NoError(t, err)
	return build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: jobs.AI{Registry: registry}}), servers
}

// asksModels is a pipeline of one question to several models.
func asksModels(models []string, more string) string {
	return fmt.Sprintf(`{"semantics": 5, "name": "Ask", "input": [{"name": "n", "type": "number", "required": true}], "steps": [
		{"id": "ask", "name": "Ask", "kind": "ai", "retry": {"attempts": 1}, "with": {"models": ["%s"], "max_tokens": 100,
			"instructions": "Answer.", "prompt": "{{ input.n }}" %s}}],
		"result": [{"name": "given", "formula": "steps.ask"}]}`, strings.Join(models, `", "`), more)
}

const oneField = `, "answer": [{"name": "kind", "label": "Kind", "type": "choice", "required": true, "choices": [{"value": "order"}, {"value": "other"}]}]`

// tried are the tries of the run's one step as people are told of them.
func (h *house) tried(p engine.Progress) []string {
	h.t.Helper()
	var told []string
	for _, try := range h.attempts(p.Steps[0].ID) {
		line := fmt.Sprintf("%d %s", try.Number, try.Outcome)
		if try.Model != "" {
			line += " " + try.Model
		}
		if try.Failure != nil {
			line += " " + try.Failure.Class
		}
		told = append(told, line)
	}
	return told
}

// The bar: inside one step the first model is overloaded, the second has no answer, and
// the third gives one. The record names all three, each call is paid for by its own price,
// and from one to the next nothing is lost but a commit.
func TestChainFromTheFirstToTheThirdModel(t *testing.T) { // by itself: it measures
	h, servers := chainHouse(t)
	h.work()
	id := h.publish(asksModels([]string{firstModel, secondModel, thirdModel}, ""))
	const thinks = 40 * time.Millisecond
	var added []time.Duration
	var last engine.RunID
	for range 7 {
		var mu sync.Mutex
		var arrivals []time.Time
		arrived := func() { mu.Lock(); defer mu.Unlock(); arrivals = append(arrivals, time.Now()) }
		servers[firstModel].Play(fakellm.Turn{OnArrival: arrived, Delay: thinks, Status: 529})
		servers[secondModel].Play(fakellm.Turn{OnArrival: arrived, Delay: thinks, Status: 400, Code: "context_length_exceeded"})
		servers[thirdModel].Play(fakellm.Turn{OnArrival: arrived, Text: "here", Usage: []byte(`{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}`)})
		last = h.start(id, `{"n": 1}`)
		p := h.awaitEnd(last)
		require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
		require.Len(t, arrivals, 3)
		added = append(added, arrivals[2].Sub(arrivals[0])-2*thinks)
	}
	slices.Sort(added)
	t.Logf("added by going from the first to the third model: %v at best, %v in the middle, %v at worst", added[0], added[len(added)/2], added[len(added)-1])
	require.LessOrEqual(t, added[len(added)/2], 50*time.Millisecond)

	p := h.progress(last)
	require.JSONEq(t, `{"given": {"text": "here"}}`, h.value(p.Run.Result))
	require.Equal(t, []string{
		"1 failed " + firstModel + " overloaded", "2 failed " + secondModel + " context_too_long", "3 done " + thirdModel,
	}, h.tried(p))
	tries := h.attempts(p.Steps[0].ID)
	require.Equal(t, "The next model is asked: "+secondModel+".", tries[0].Followed)
	require.Equal(t, "The next model is asked: "+thirdModel+".", tries[1].Followed)
	charges := h.charges(last)
	require.Len(t, charges, 1, "what was refused before it began costs nothing")
	require.Equal(t, thirdModel, charges[0].Model)
	require.EqualValues(t, (1000*750_000+200*3_750_000)/1_000_000, charges[0].Cost)
	require.EqualValues(t, charges[0].Cost, p.Steps[0].CostMicros)
	require.EqualValues(t, charges[0].Cost, h.real(last).Spent)
	require.Zero(t, h.real(last).Held)
	for _, server := range servers {
		seen := server.Seen()
		require.True(t, strings.HasPrefix(seen[len(seen)-1].Key, p.Steps[0].ID.String()))
	}
	require.NotEqual(t, servers[firstModel].Seen()[6].Key, servers[secondModel].Seen()[6].Key, "another model, another key")
	h.requireSound()
}

// chainCase is what a model does and what comes of it.
type chainCase struct {
	name   string
	more   string // of the step's settings
	models []string
	turns  map[string][]fakellm.Turn
	state  engine.RunState
	class  string // of the run's failure
	tried  []string
	words  []string // that people read about the tries
}

func chainCases() []chainCase {
	two := []string{firstModel, secondModel}
	good := fakellm.Turn{Text: `{"kind":"order"}`}
	return []chainCase{
		{name: "S37 overloaded (529) moves on", models: two,
			turns: map[string][]fakellm.Turn{firstModel: {{Status: 529}}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " overloaded", "2 done " + secondModel}},
		{name: "S39 a blank answer is no answer", models: two, more: oneField,
			turns: map[string][]fakellm.Turn{firstModel: {{Blank: true}}, secondModel: {good}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " empty", "2 done " + secondModel}},
		{name: "S40 a safety stop is a refusal, which fails", models: two,
			turns: map[string][]fakellm.Turn{firstModel: {{Text: "I", Finish: "content_filter"}}}, state: engine.RunFailed, class: "refused",
			tried: []string{"1 failed " + firstModel + " refused"}},
		{name: "S40 a safety stop is a refusal, which goes to the next model", models: two, more: `, "on_refusal": "next_model"`,
			turns: map[string][]fakellm.Turn{firstModel: {{Text: "I", Finish: "content_filter"}}, secondModel: {{Text: "Well."}}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " refused", "2 done " + secondModel}},
		{name: "S40 all decline", models: two, more: `, "on_refusal": "next_model"`,
			turns: map[string][]fakellm.Turn{firstModel: {{Refusal: "No."}}, secondModel: {{Refusal: "No."}}}, state: engine.RunFailed, class: "refused",
			tried: []string{"1 failed " + firstModel + " refused", "2 failed " + secondModel + " refused"}},
		{name: "S41 an answer cut inside a fence gets more room", models: []string{firstModel}, more: oneField,
			turns: map[string][]fakellm.Turn{firstModel: {{Text: "```json\n{\"kind\": \"or", Finish: "length"}, good}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " truncated", "2 done " + firstModel}, words: []string{"with room for 200 tokens"}},
		{name: "S41 more room would be too dear", models: two, more: oneField + `, "max_cost": 3950`,
			turns: map[string][]fakellm.Turn{firstModel: {{Text: "```json\n{\"kind\": \"or", Finish: "length", Usage: []byte(`{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}`)}}, secondModel: {good}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " truncated", "2 done " + secondModel}},
		{name: "a model without a price is left out", models: []string{noPrice, secondModel},
			turns: map[string][]fakellm.Turn{}, state: engine.RunCompleted,
			tried: []string{"1 failed " + noPrice + " no_price", "2 done " + secondModel}, words: []string{"It was left out, and the next model is asked: " + secondModel}},
		{name: "a model without a price behind one that failed", models: []string{firstModel, noPrice, secondModel},
			turns: map[string][]fakellm.Turn{firstModel: {{Status: 401}}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " auth", "2 failed " + noPrice + " no_price", "3 done " + secondModel}},
		{name: "no money at the provider", models: two,
			turns: map[string][]fakellm.Turn{firstModel: {{Status: 429, Code: "insufficient_quota"}}}, state: engine.RunCompleted,
			tried: []string{"1 failed " + firstModel + " spend_limit", "2 done " + secondModel}},
		{name: "none answers", models: two,
			turns: map[string][]fakellm.Turn{firstModel: {{Status: 500}}, secondModel: {{Status: 503}}}, state: engine.RunFailed, class: "overloaded",
			tried: []string{"1 failed " + firstModel + " server", "2 failed " + secondModel + " overloaded"}},
	}
}

func TestCaseS37ToS41ThroughTheChain(t *testing.T) {
	t.Parallel()
	for _, c := range chainCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, servers := chainHouse(t)
			for model, turns := range c.turns {
				servers[model].Play(turns...)
			}
			h.work()
			more := c.more
			p := h.awaitEnd(h.start(h.publish(asksModels(c.models, more)), `{"n": 1}`))
			require.Equal(t, c.state, p.Run.State, "%+v", p.Run.Failure)
			require.Equal(t, c.tried, h.tried(p))
			if c.class != "" {
				require.Equal(t, c.class, p.Run.Failure.Class)
			}
			var followed strings.Builder
			for _, try := range h.attempts(p.Steps[0].ID) {
				followed.WriteString(try.Followed)
			}
			for _, words := range c.words {
				require.Contains(t, followed.String(), words)
			}
			h.requireAllPaid(p)
		})
	}
}

// requireAllPaid checks that the step's cost is the sum of its lines, and nothing is held.
func (h *house) requireAllPaid(p engine.Progress) {
	h.t.Helper()
	var sum ledger.Micros
	for _, charge := range h.charges(p.Run.ID) {
		require.Positive(h.t, charge.Cost)
		sum += charge.Cost
	}
	require.EqualValues(h.t, sum, p.Steps[0].CostMicros)
	require.Equal(h.t, sum, h.real(p.Run.ID).Spent)
	require.Zero(h.t, h.real(p.Run.ID).Held)
	h.requireSound()
}

// S52: the step that fell back has a cost, which is that of every call that was answered.
func TestCaseS52CostAfterAFallback(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	servers[firstModel].Play(fakellm.Turn{Text: "no json", Usage: []byte(`{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}`)})
	servers[secondModel].Play(fakellm.Turn{Text: `{"kind":"order"}`, Model: "claude-sonnet-5-20261001", Usage: []byte(`{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}`)})
	h.work()
	run := h.start(h.publish(asksModels([]string{firstModel, secondModel}, oneField)), `{"n": 1}`)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	charges := h.charges(run)
	require.Len(t, charges, 2)
	require.Equal(t, firstModel, charges[0].Model)
	require.EqualValues(t, 1000*2+100*12, charges[0].Cost)
	require.Equal(t, secondModel, charges[1].Model)
	require.EqualValues(t, 1000*2+100*10, charges[1].Cost)
	h.requireAllPaid(p)
}

// A model whose answer does not fit is asked anew, is told what was wrong, and under
// another key; then the next one is asked.
func TestAnswersThatDoNotFitAreAskedForAnew(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	servers[firstModel].Play(fakellm.Turn{Text: `{"kind":"banana"}`}, fakellm.Turn{Text: "sorry"}, fakellm.Turn{Blank: true})
	servers[secondModel].Play(fakellm.Turn{Text: `{"kind":"other"}`})
	h.work()
	document := strings.Replace(asksModels([]string{firstModel, secondModel}, oneField), `"retry": {"attempts": 1}, `, "", 1)
	p := h.awaitEnd(h.start(h.publish(document), `{"n": 1}`))
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, []string{
		"1 failed " + firstModel + " malformed", "2 failed " + firstModel + " malformed", "3 failed " + firstModel + " empty", "4 done " + secondModel,
	}, h.tried(p))
	seen := servers[firstModel].Seen()
	require.Len(t, seen, 3)
	require.NotContains(t, seen[0].User, "could not be used")
	require.Contains(t, seen[1].User, "banana")
	require.Contains(t, seen[1].User, "could not be used")
	require.Equal(t, 3, len(map[string]bool{seen[0].Key: true, seen[1].Key: true, seen[2].Key: true}))
	require.NotContains(t, servers[secondModel].Seen()[0].User, "could not be used", "the next model did nothing wrong")
	h.requireAllPaid(p)
}

// Where a model declines and the step says so, people are asked for the answer.
func TestPeopleAnswerInTheModelsPlace(t *testing.T) {
	t.Parallel()
	for verdict, state := range map[review.Verdict]engine.RunState{review.Approve: engine.RunCompleted, review.Reject: engine.RunFailed} {
		t.Run(string(verdict), func(t *testing.T) {
			t.Parallel()
			h, servers := chainHouse(t)
			servers[firstModel].Play(fakellm.Turn{Refusal: "I cannot help with that."})
			h.work()
			run := h.start(h.publish(asksModels([]string{firstModel, secondModel}, oneField+`, "on_refusal": "ask"`)), `{"n": 1}`)
			p, step := h.awaitWait(run, engine.WaitReview)
			require.Zero(t, h.real(run).Held, "nothing is held while people are asked")
			detail := h.review(step)
			require.Equal(t, "Ask: what is the answer?", detail.Content.Title)
			require.Len(t, detail.Content.Editable, 1)
			var edits map[string]json.RawMessage
			if verdict == review.Approve {
				edits = map[string]json.RawMessage{"answer_kind": json.RawMessage(`"other"`)}
			}
			h.decideEdited(step, verdict, "Because.", edits)
			p = h.awaitEnd(run)
			require.Equal(t, state, p.Run.State, "%+v", p.Run.Failure)
			if state == engine.RunCompleted {
				require.JSONEq(t, `{"given": {"kind": "other"}}`, h.value(p.Run.Result))
				require.Contains(t, p.Steps[0].Note, "gave the answer")
			} else {
				require.Equal(t, "refused", p.Run.Failure.Class)
			}
			require.Empty(t, servers[secondModel].Seen())
			h.requireAllPaid(p)
		})
	}
}

// Documents that follow older rules ask their first model only, as they always did.
func TestOlderDocumentsAskTheirFirstModel(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t)
	servers[firstModel].Play(fakellm.Turn{Status: 401})
	h.work()
	document := asksModels([]string{firstModel, secondModel}, "")
	id := h.publish(document)
	_, err := h.super().Exec(t.Context(), `UPDATE pipeline_versions SET semantics = 3, document = replace(document, '"semantics":5', '"semantics":3') WHERE pipeline_id = $1`, id)
	require.NoError(t, err)
	p := h.awaitEnd(h.start(id, `{"n": 1}`))
	require.Equal(t, engine.RunFailed, p.Run.State)
	require.Empty(t, servers[secondModel].Seen())
	require.Equal(t, []string{"1 failed " + firstModel + " auth"}, h.tried(p))
}
