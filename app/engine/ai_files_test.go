package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/jobs"
	"tollgate/tenants"
)

const onePicture = "\x89PNG\r\n\x1a\n, a scan"

// reads is a pipeline that gives models the files of the formulas to read.
func reads(models, formulas, more string) string {
	list, _ := json.Marshal(strings.Split(formulas, "; "))
	return fmt.Sprintf(`{"semantics": 5, "name": "Read", "input": [{"name": "list", "label": "List", "type": "file"}], "steps": [
		{"id": "ask", "name": "Ask", "kind": "ai", "retry": {"attempts": 1}, "with": {"models": ["%s"], "max_tokens": 100,
			"instructions": "Read it.", "prompt": "What is on it?", "files": %s %s}}],
		"result": [{"name": "r", "formula": "steps.ask.text"}]}`, strings.ReplaceAll(models, ", ", `", "`), list, more)
}

// fileRecord is a formula that gives what looks like a file.
func fileRecord(name, mediaType, digest, size string) string {
	return fmt.Sprintf(`{"name": %q, "type": %q, "digest": %q, "size": %s}`, name, mediaType, digest, size)
}

// seenBy keeps what AI steps are given, and answers with how often it was asked.
func seenBy(seen *[]engine.AIInput) map[pipeline.Kind]engine.Caller {
	var mu sync.Mutex
	return map[pipeline.Kind]engine.Caller{pipeline.KindAI: callerFunc(func(_ context.Context, call engine.Call) engine.Reply {
		mu.Lock()
		defer mu.Unlock()
		var input engine.AIInput
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return engine.Reply{Failure: &engine.Failure{Class: "input", Message: err.Error()}}
		}
		*seen = append(*seen, input)
		return engine.Reply{Output: fmt.Appendf(nil, `{"text": "answer %d"}`, len(*seen)),
			Bill: &engine.Bill{Model: input.Models[0], Tokens: ledger.Tokens{Input: 10, Output: 10}}}
	})}
}

// Files are part of what is asked: the same question about another file is another one.
func TestFilesOfAQuestionAreInItsInput(t *testing.T) {
	t.Parallel()
	var seen []engine.AIInput
	h := build(t, seenBy(&seen))
	h.work()
	id := h.publish(reads("practice/standard", "input.list; [input.list]; null", `, "reuse": true`))
	require.Equal(t, `"answer 1"`, h.result(h.awaitEnd(h.startWithFile(id, "scan.png", onePicture))))
	ref := engine.FileRef{Name: "scan.png", Type: "image/png", Digest: engine.DigestOf([]byte(onePicture)).String(), Size: int64(len(onePicture))}
	require.Equal(t, []engine.FileRef{ref, ref}, seen[0].Files)
	require.Equal(t, `"answer 1"`, h.result(h.awaitEnd(h.startWithFile(id, "scan.png", onePicture))), "the same file")
	require.Equal(t, `"answer 2"`, h.result(h.awaitEnd(h.startWithFile(id, "scan.png", onePicture+"!"))), "another file of the same name")
	require.Len(t, seen, 2)
}

func TestFilesThatNoModelIsGiven(t *testing.T) {
	t.Parallel()
	var seen []engine.AIInput
	h := build(t, seenBy(&seen))
	h.work()
	digest := engine.DigestOf([]byte("x")).String()
	one := func(size string) string { return fileRecord("x.png", "image/png", digest, size) }
	for name, row := range map[string]struct{ formulas, says string }{
		"too many":       {"[" + strings.Repeat(one("1")+", ", 20) + one("1") + "]", "gives the AI 21 files to read; at most 20"},
		"too large":      {fmt.Sprint(one("16777216"), "; ", one("1")), "more than 16 MB together"},
		"beyond numbers": {fmt.Sprint(one("9223372036854775807"), "; ", one("9223372036854775807")), "more than 16 MB together"},
		"no size":        {one("null"), "does not say how large it is"},
		"a made-up size": {one(`\"much\"`), "does not say how large it is"},
		"below nothing":  {one("-5"), "does not say how large it is"},
		"a text":         {`\"scan.png\"`, "In a file to read: it is not a file."},
		"a bad digest":   {fileRecord("x.png", "image/png", "../../etc", "1"), "In a file to read: it is not a file."},
	} {
		formulas := strings.ReplaceAll(row.formulas, `\"`, `"`)
		p := h.awaitEnd(h.startWithFile(h.publish(reads("practice/standard", formulas, "")), "scan.png", onePicture))
		require.Equal(t, engine.RunFailed, p.Run.State, name)
		require.Contains(t, p.Run.Failure.Message, row.says, name)
	}
	require.Empty(t, seen)
}

// wired are the formats of three providers, each with one priced model that takes files.
func wired(t *testing.T) (*llm.Registry, map[string]*fakellm.Server) {
	t.Helper()
	servers := map[string]*fakellm.Server{}
	var entries []llm.Entry
	for i, model := range []string{firstModel, secondModel, thirdModel} {
		server := fakellm.New(uint64(i) + 1)
		listening := httptest.NewServer(server)
		t.Cleanup(func() { server.Close(); listening.Close() })
		client, err := llm.NewHTTP(listening.Listener.Addr().String())
		require.NoError(t, err)
		config := llm.Config{BaseURL: listening.URL, Key: llm.FixedKey("sk"), HTTP: client}
		prefix, name, _ := strings.Cut(model, "/")
		switch prefix {
		case "openai":
			config.BaseURL += "/v1"
			provider, err := llm.NewOpenAI(config)
			require.NoError(t, err)
			entries = append(entries, llm.OpenAIEntry(prefix, provider, name))
		case "anthropic":
			provider, err := llm.NewAnthropic(config)
			require.NoError(t, err)
			entries = append(entries, llm.AnthropicEntry(provider, name))
		default:
			provider, err := llm.NewGemini(config)
			require.NoError(t, err)
			entries = append(entries, llm.GeminiEntry(provider, name))
		}
		servers[model] = server
	}
	registry, err := llm.NewRegistry(entries...)
	require.NoError(t, err)
	return registry, servers
}

// A picture arrives at each provider in its own format, and the money that was held covers
// what a model may be charged for it.
func TestAPictureArrivesAtEachProvider(t *testing.T) {
	t.Parallel()
	registry, servers := wired(t)
	h := build(t, nil)
	ai := jobs.AI{DB: h.db.DB, Registry: registry}
	h.engine.Callers[pipeline.KindAI], h.engine.InputBound = ai, ai.InputBound
	h.work()
	for model, server := range servers {
		run := h.startWithFile(h.publish(reads(model, "input.list", "")), "scan.png", onePicture)
		p := h.awaitEnd(run)
		require.Equal(t, engine.RunCompleted, p.Run.State, "%s: %+v", model, p.Run.Failure)
		got := server.Seen()
		require.Len(t, got, 1, model)
		require.Equal(t, []string{"image/png"}, got[0].Files, model)
		require.Contains(t, string(got[0].Body), "iVBORw0KGgosIGEgc2Nhbg==", model)
		require.Contains(t, got[0].User, "What is on it?", model)

		asked := llm.Request{Model: model, Instructions: "Read it.", Prompt: "What is on it?",
			Files: []llm.File{{Name: "scan.png", MediaType: "image/png", Content: []byte(onePicture)}}}
		charges := h.charges(run)
		require.Len(t, charges, 1, model)
		price, err := ledger.PriceAt(model, time.Now())
		require.NoError(t, err)
		worst := price.Cost(ledger.Tokens{Input: registry.InputBound(asked), Output: 100})
		held := ledger.Micros(h.count(`SELECT amount FROM holds WHERE run_id = $1`, run))
		require.GreaterOrEqual(t, held, worst, model)
		require.Less(t, charges[0].Cost, held, model)
	}
}

// A model that takes no files is not asked and costs nothing; the next one is.
func TestAModelThatTakesNoFilesIsLeftOut(t *testing.T) {
	t.Parallel()
	h, servers := chainHouse(t) // whose second model is not known to take files
	ai, _ := h.engine.Callers[pipeline.KindAI].(jobs.AI)
	ai.DB = h.db.DB
	h.engine.Callers[pipeline.KindAI] = ai
	h.work()
	run := h.startWithFile(h.publish(reads(secondModel+", "+firstModel, "input.list", "")), "scan.png", onePicture)
	p := h.awaitEnd(run)
	require.Equal(t, engine.RunCompleted, p.Run.State, "%+v", p.Run.Failure)
	require.Equal(t, []string{"1 failed " + secondModel + " invalid_request", "2 done " + firstModel}, h.tried(p))
	require.Empty(t, servers[secondModel].Seen())
	charges := h.charges(run)
	require.Len(t, charges, 1)
	require.Equal(t, firstModel, charges[0].Model)

	alone := h.startWithFile(h.publish(reads(secondModel, "input.list", "")), "scan.png", onePicture)
	p = h.awaitEnd(alone)
	require.Equal(t, "invalid_request", p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "The model "+secondModel+" does not take files, so it was not asked.")
	require.Empty(t, h.charges(alone))
	require.Zero(t, h.count(`SELECT count(*) FROM holds WHERE run_id = $1 AND state <> 'released'`, alone))
}

// Who can write a value can write a digest and a size, too: only files of the run itself
// are read, of the size that money was held for, and none of another workspace.
func TestModelsReadOnlyFilesOfTheRun(t *testing.T) {
	t.Parallel()
	registry, servers := wired(t)
	h := build(t, nil)
	ai := jobs.AI{DB: h.db.DB, Registry: registry}
	h.engine.Callers[pipeline.KindAI], h.engine.InputBound = ai, ai.InputBound
	h.work()
	run := h.startWithFile(h.publish(reads(firstModel, "input.list", "")), "scan.png", onePicture)
	h.awaitEnd(run)
	require.Len(t, servers[firstModel].Seen(), 1)
	digest, size := engine.DigestOf([]byte(onePicture)).String(), fmt.Sprint(len(onePicture))

	thief := h.publish(reads(firstModel, fileRecord("x.png", "image/png", digest, size), ""))
	p := h.awaitEnd(h.startWithFile(thief, "other.txt", "other"))
	require.Equal(t, engine.ClassFormula, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "“x.png” is no file of this run, so the model was not asked.")

	smaller := h.publish(reads(firstModel, fileRecord("x.txt", "text/plain", digest, "1"), ""))
	p = h.awaitEnd(h.startWithFile(smaller, "scan.png", onePicture))
	require.Equal(t, engine.ClassFormula, p.Run.Failure.Class)
	require.Contains(t, p.Run.Failure.Message, "“x.txt” is not as large as its record says")

	input, err := json.Marshal(engine.AIInput{Models: []string{firstModel}, Prompt: "What is on it?", MaxTokens: 100,
		Files: []engine.FileRef{{Name: "x.png", Type: "image/png", Digest: digest, Size: int64(len(onePicture))}}})
	require.NoError(t, err)
	call := engine.Call{Tenant: h.tenant, Run: run, StepRun: tenants.NewID[engine.StepRun](), Attempt: 1, Key: "k", Input: input, Live: func(string) {}}
	require.Nil(t, ai.Call(t.Context(), call).Failure, "the run's own workspace")
	call.Tenant, _ = h.db.Tenant(t)
	reply := ai.Call(t.Context(), call)
	require.NotNil(t, reply.Failure)
	require.Contains(t, reply.Failure.Message, "no file of this run")
	require.Nil(t, reply.Bill)
	require.Len(t, servers[firstModel].Seen(), 2)
}
