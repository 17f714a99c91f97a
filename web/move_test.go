package web

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// republish makes a document the next version of a pipeline.
func (s *site) republish(in workspace, id pipeline.ID, document pipeline.Document) {
	s.t.Helper()
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		builder := in.people[tenants.Builder].User.ID
		if err := pipeline.SaveDraft(ctx, tx, id, document, builder); err != nil {
			return err
		}
		_, err := pipeline.Publish(ctx, tx, id, "A note on "+document.Name, builder)
		return err
	})
}

// longer is a document that goes on behind its question.
func longer(document pipeline.Document) pipeline.Document {
	document.Steps = append(document.Steps, pipeline.Step{ID: "after", Name: hostile, Kind: pipeline.KindSet, With: &pipeline.Set{
		Values: []pipeline.Value{{Name: "n", Formula: "1"}},
	}})
	return document
}

// A run is moved by a confirmed press, once, on record; its page says so, and the page of
// versions counts it where it is.
func TestMoveRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	run := s.start(s.home, id, map[string]string{"topic": hostile})
	s.start(s.home, id, map[string]string{"topic": "another"})
	s.work()
	path, versions := s.at("runs", run.ID.String(), "move"), s.at("pipelines", id.String(), "versions")
	builder, viewer := s.in(tenants.Builder), s.in(tenants.Viewer)
	builder.get(path).is(http.StatusOK).says("There is no other version").hides("confirm-move")
	s.republish(s.home, id, longer(askingDocument("Sign-off")))
	builder.get(s.at("runs", run.ID.String())).says("v1", "move to v2")
	viewer.get(s.at("runs", run.ID.String())).hides("move to v2")
	viewer.get(versions).is(http.StatusOK).says("v2, live", "2 open runs", "2 waiting for a person", "A note on Sign-off")
	builder.get(path).is(http.StatusOK).says("Move to v2", "is on v1", "What it waits for stays open", "Leave it on v1", "Cancel the run").hides(hostile)
	builder.get(s.at("runs", run.ID.String())).says("Waiting for a person").hides("moved the run")
	for range 2 {
		builder.post(path, "from", "1", "to", "2").leadsTo(s.at("runs", run.ID.String()))
	}
	builder.get(s.at("runs", run.ID.String())).says("v2", "moved the run from v1 to v2").hides("move to v")
	viewer.get(versions).says("1 waiting for a person")
	viewer.get(s.at("runs")+"?state=person&version=2&pipeline="+id.String()).is(http.StatusOK).says("1 run of “Sign-off”, v2", "#1").hides("#2")
	viewer.get(s.at("runs") + "?version=2").is(http.StatusNotFound)
	viewer.get(s.at("runs") + "?version=x&pipeline=" + id.String()).is(http.StatusNotFound)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "run", ID: run.ID}, tenants.AuditID{})
		require.Len(t, entries, 1)
		require.Equal(t, "run.moved", entries[0].Action)
		return err
	})
	builder.post(path, "from", "1", "to", "1").is(http.StatusConflict).says("Somebody was faster")
	builder.post(path, "from", "x", "to", "1").is(http.StatusNotFound)
	builder.get(path + "?to=77").is(http.StatusNotFound)
}

// A version that does not fit is refused, with each step that is in the way.
func TestMoveIsRefusedWithItsReasons(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	run := s.start(s.home, id, map[string]string{"topic": "one"})
	s.work()
	changed := askingDocument("Sign-off")
	changed.Steps[0].With.(*pipeline.Review).Question = "Really?"
	changed.Steps = append([]pipeline.Step{{ID: "first", Name: hostile, Kind: pipeline.KindSet, With: &pipeline.Set{
		Values: []pipeline.Value{{Name: "n", Formula: "1"}},
	}}}, changed.Steps...)
	changed.Input = append(changed.Input, pipeline.Field{Name: "who", Label: "For whom", Type: pipeline.TypeText, Required: true})
	s.republish(s.home, id, changed)
	path := s.at("runs", run.ID.String(), "move")
	s.in(tenants.Admin).get(path).is(http.StatusOK).says(
		"It does not fit v2", "For whom ” is new and has to be filled in", "Step 1 “Ask the reviewer” has begun, and does something else in v2",
		"of v2 stands before what the run has done, so it would never run", "Leave it on v1", "Cancel the run",
	).hides(hostile, "confirm-move")
	s.in(tenants.Admin).post(path, "from", "1", "to", "2").is(http.StatusConflict).says("The run does not fit this version")
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		still, err := engine.RunByID(ctx, tx, run.ID)
		require.Equal(t, 1, still.Version)
		return err
	})
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error { return s.engine.Cancel(ctx, tx, run.ID, "Test") })
	s.in(tenants.Admin).get(path).leadsTo(s.at("runs", run.ID.String()))
	s.in(tenants.Admin).post(path, "from", "1", "to", "2").is(http.StatusConflict).says("This run has ended already")
}

// Many versions are listed, newest first, and each is offered.
func TestManyVersionsAreOffered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.publish(s.home, askingDocument("Sign-off"))
	run := s.start(s.home, id, map[string]string{"topic": "one"})
	s.work()
	for range 60 {
		s.republish(s.home, id, askingDocument("Sign-off"))
	}
	page := s.in(tenants.Builder).get(s.at("pipelines", id.String(), "versions")).is(http.StatusOK).says("v61, live", "1 waiting for a person")
	require.Len(t, page.all("tr", "id", "version-1"), 1, "old as it is, it has a run")
	require.Empty(t, page.all("tr", "id", "version-5"))
	path := s.at("runs", run.ID.String(), "move")
	s.in(tenants.Builder).get(path).says("Move to v61", "v"+strconv.Itoa(60))
	s.in(tenants.Builder).get(path + "?to=60").says("Move to v60")
}
