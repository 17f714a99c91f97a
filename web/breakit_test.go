package web

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// breaksAll is a setting for newSite: two things can be broken, and nothing is.
func breaksAll(config *Config) {
	config.Local.Break = &Breaking{KillWorker: func(context.Context) error { return nil }, Troubles: []Trouble{
		{Name: "kill", Title: "Kill the worker", Does: "It is killed.", Watch: "Another takes over.", Kills: true},
		{Name: "clock", Title: "Skip the clock", Does: "The run waits.", Watch: "It goes on.", Skips: true},
	}}
}

// waitsLong waits as long as it is told to by nobody.
const waitsLong = `{"semantics": 3, "name": "Break it", "run_name": "Break it: {{ input.order }}", "input": [
	{"name": "order", "label": "What shall go wrong", "type": "choice", "required": true, "choices": [{"value": "kill", "label": "Kill"}, {"value": "clock", "label": "Clock"}]}],
	"steps": [{"id": "days", "name": "Wait three days", "kind": "wait", "with": {"for": "72h"}}]}`

func (s *site) publishBreakable(in workspace) {
	s.t.Helper()
	document, err := pipeline.Parse([]byte(waitsLong))
	require.NoError(s.t, err)
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		id, err := pipeline.Create(ctx, tx, document, BreakTemplate, in.people[tenants.Owner].User.ID)
		if err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", in.people[tenants.Owner].User.ID)
		return err
	})
}

// What is broken is a run of the workspace's own; a form sent twice breaks once; what
// nobody ordered, and other runs, are not there.
func TestBreakIt(t *testing.T) {
	t.Parallel()
	var killed atomic.Int32
	s := newSite(t, inLocalMode, breaksAll, func(c *Config) {
		c.Local.Break.KillWorker = func(context.Context) error { killed.Add(1); return nil }
	})
	builder := s.in(tenants.Builder)
	builder.get(s.at("break")).says("Nothing to break here")
	s.publishBreakable(s.home)
	key := newFormKey()
	builder.post(s.at("break"), orderName, "kill", formKeyName, "").is(http.StatusNotFound)
	builder.post(s.at("break"), orderName, `x","y":"`, formKeyName, key).is(http.StatusNotFound)

	kill := builder.post(s.at("break"), orderName, "kill", formKeyName, key).is(http.StatusSeeOther).header.Get("Location")
	require.Equal(t, kill, builder.post(s.at("break"), orderName, "kill", formKeyName, key).header.Get("Location"))
	s.work()
	builder.get(kill).says("Another takes over.", "Kill the worker").hides("Skip the clock")
	for range 2 {
		builder.post(kill+"/kill", formKeyName, key).is(http.StatusSeeOther)
	}
	require.EqualValues(t, 1, killed.Load())
	builder.post(kill+"/skip", formKeyName, newFormKey()).is(http.StatusNotFound)

	clock := builder.post(s.at("break"), orderName, "clock", formKeyName, newFormKey()).header.Get("Location")
	s.work()
	builder.post(clock+"/kill", formKeyName, newFormKey()).is(http.StatusNotFound)
	builder.post(clock+"/skip", formKeyName, newFormKey()).is(http.StatusSeeOther)
	fired, err := s.engine.FireTimers(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, fired)
	s.work()
	builder.get(clock).says("It goes on.").hides("skip-clock")

	other := s.publish(s.home, askingDocument("No pipeline to break"))
	run := s.start(s.home, other, map[string]string{"topic": "x"})
	builder.get(s.at("break", run.ID.String())).is(http.StatusNotFound)
	s.in(tenants.Viewer).get(s.at("break")).is(http.StatusForbidden)
	stranger := s.workspace("Other")
	s.publishBreakable(stranger)
	builder.get("/w/" + stranger.ID.String() + "/break").is(http.StatusNotFound)
}
