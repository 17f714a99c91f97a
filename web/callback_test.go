package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// answeredRun is a run that waits for another system's answer, and the path for it.
func (s *site) answeredRun(topic string) (engine.RunID, string) {
	s.t.Helper()
	document, err := pipeline.Parse([]byte(`{"semantics": 3, "name": "Contracts", "run_name": "{{ input.topic }}",
		"input": [{"name": "topic", "label": "Topic", "type": "text", "required": true}],
		"steps": [{"id": "signed", "name": "Have it signed", "kind": "event", "with": {"name": "signed", "callback": true, "deadline": "2d"}}]}`))
	require.NoError(s.t, err)
	run := s.start(s.home, s.publish(s.home, document), map[string]string{"topic": topic}).ID
	s.work()
	return run, strings.TrimPrefix(s.engine.Callbacks.Address(s.home.ID, run, engine.StepRunID{}, "signed"), s.engine.Callbacks.BaseURL)
}

// sendAnswer posts as a program does, which has no page that it comes from.
func (s *site) sendAnswer(method, path, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequest(method, siteURL+path, bytes.NewReader([]byte(body)))
	out := httptest.NewRecorder()
	s.web.Handler().ServeHTTP(out, r)
	return out
}

func (s *site) events() int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `SELECT count(*) FROM events`).Scan(&n))
	return n
}

// Looking at an address decides nothing and tells nothing; one POST answers.
func TestOnlyPostAnswersAtAnAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run, path := s.answeredRun("Nordwind")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		s.sendAnswer(method, path, `{"ok": true}`)
	}
	require.Zero(t, s.events())
	looked := s.sendAnswer(http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, looked.Code)
	require.NotContains(t, looked.Body.String(), "Nordwind")
	require.Equal(t, looked.Code, s.sendAnswer(http.MethodGet, engine.CallbackPath+"nothing", "").Code)
	require.Equal(t, "no-referrer", looked.Header().Get("Referrer-Policy"))

	s.in(tenants.Owner).get(s.at("runs", run.String())).says("another system’s answer", path)
	s.in(tenants.Viewer).get(s.at("runs", run.String())).hides(path)
	require.JSONEq(t, `{"status": "received"}`, s.sendAnswer(http.MethodPost, path, `{"ok": true}`).Body.String())
	require.Equal(t, 1, s.events())
	s.work()
	s.in(tenants.Owner).get(s.at("runs", run.String())).says("Done").hides(path)
	require.NotContains(t, s.log.String(), strings.TrimPrefix(path, engine.CallbackPath), "the address is not in the log")
}

// Whatever is no address of ours gets the same answer, and what is no answer is refused.
func TestHostileAnswersAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, path := s.answeredRun("Nordwind")
	unknown := s.sendAnswer(http.MethodPost, engine.CallbackPath+"signed.AAAA", `1`)
	require.Equal(t, http.StatusNotFound, unknown.Code)
	for _, other := range []string{path + "A", path[:len(path)-2], strings.Replace(path, "signed.", "signee.", 1), engine.CallbackPath + strings.Repeat("x", 5000), engine.CallbackPath + "%00"} {
		again := s.sendAnswer(http.MethodPost, other, `1`)
		require.Equal(t, unknown.Code, again.Code, other)
		require.Equal(t, unknown.Body.String(), again.Body.String(), other)
	}
	for body, status := range map[string]int{
		"": 400, "{": 400, `{"a": "` + strings.Repeat("x", engine.MaxEvent) + `"}`: 413, strings.Repeat("[", 20_000): 400, `"\ud800"`: 0, "a=b": 400, "\xff": 400, `{"a\u0000b": 1}`: 0,
	} {
		got := s.sendAnswer(http.MethodPost, path, body)
		if status != 0 {
			require.Equal(t, status, got.Code, "%.40q: %s", body, got.Body.String())
		}
		require.Less(t, got.Code, 500)
		require.NotContains(t, got.Body.String(), "Nordwind")
	}
	s.web.paces = newPace(1<<40, 3)
	codes := map[int]int{}
	for range 6 {
		codes[s.sendAnswer(http.MethodPost, engine.CallbackPath+"signed.AAAA", `1`).Code]++
	}
	require.Equal(t, 3, codes[http.StatusTooManyRequests])
}

// The page of an address, and that of a run that waits at one, pass the checks of a
// browser and of axe on a phone and on a desk, light and dark.
func TestTheLookOfAddresses(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	run, path := s.answeredRun("Frame contract 2026")
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			p.Go(s.web.origin + path)
			p.Shot("callback")
			p.Check(t)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + s.at("runs", run.String()))
			p.Shot("callback-run")
			p.Check(t)
		})
	}
}
