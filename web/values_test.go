package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// A value comes as a file, byte for byte, whatever it holds, and only to those who ask
// for it by a run that refers to it.
func TestValueIsHandedOutAsAFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	run := s.start(s.home, id, map[string]string{"topic": "<script>alert(1)</script>"})
	other := s.start(s.home, id, map[string]string{"topic": "something else"})
	viewer := s.in(tenants.Viewer)
	p := viewer.get(s.at("runs", run.ID.String(), "values", run.Input.String()) + "?name=" + `../e"vil.html`).is(http.StatusOK)
	require.Equal(t, `{"topic":"\u003cscript\u003ealert(1)\u003c/script\u003e"}`, p.body)
	require.Equal(t, "application/json", p.header.Get("Content-Type"))
	require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
	require.Regexp(t, `^attachment; filename=e-vil\.json$`, p.header.Get("Content-Disposition"))
	require.Contains(t, p.header.Get("Content-Security-Policy"), "sandbox")
	viewer.get(s.at("runs", run.ID.String(), "values", other.Input.String())).is(http.StatusNotFound)
	viewer.get(s.at("runs", run.ID.String(), "values", "zz")).is(http.StatusNotFound)
}

// What is long is cut on the page, says so, and can be had whole.
func TestCaseS31LongValueIsCutOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := strings.Repeat("wörter und 😀 ", 20_000)
	encoded, err := json.Marshal(map[string]string{"text": long})
	require.NoError(t, err)
	s.calls.say(engine.Reply{Output: encoded})
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "x"})
	s.work()
	owner := s.in(tenants.Owner)
	p := owner.get(s.at("runs", run.ID.String(), "steps", "draft")).is(http.StatusOK).says("The first 20 KB of", "Download")
	require.Less(t, len(p.body), 250<<10)
	require.NotContains(t, p.text(), "\uFFFD", "no character is cut in two")
	var output engine.Digest
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		progress, err := engine.ProgressOf(ctx, tx, run.ID)
		output = progress.Steps[0].Output
		return err
	})
	require.Equal(t, string(encoded), owner.get(s.at("runs", run.ID.String(), "values", output.String())).is(http.StatusOK).body)
}
