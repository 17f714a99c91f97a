package web

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// A run is cancelled by a confirmed press, once, and on record; a second press shows
// what the first did.
func TestCancelRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": hostile})
	s.work()
	builder := s.in(tenants.Builder)
	path := s.at("runs", run.ID.String(), "cancel")
	builder.get(path).is(http.StatusOK).says("Cancel this run?", "It cannot go on afterwards", "no decision is needed").hides(hostile)
	builder.get(s.at("runs", run.ID.String())).says("Waiting for a person")
	for range 2 {
		builder.post(path).leadsTo(s.at("runs", run.ID.String()))
	}
	s.in(tenants.Owner).post(path).leadsTo(s.at("runs", run.ID.String()))
	builder.get(s.at("runs", run.ID.String())).says("Cancelled by Builder")
	builder.get(path).leadsTo(s.at("runs", run.ID.String()))
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "run", ID: run.ID}, tenants.AuditID{})
		require.Len(t, entries, 1)
		require.Equal(t, "run.cancelled", entries[0].Action)
		return err
	})
}

func TestEndedRunIsNotCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Done."}`)})
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "x"})
	s.work()
	s.in(tenants.Builder).post(s.at("runs", run.ID.String(), "cancel")).is(http.StatusConflict).says("This run has ended already")
}
