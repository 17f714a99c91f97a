package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Every template runs on its sample from begin to end: the practice model answers, people
// agree, and what is waited for comes.
func TestTemplatesRunToTheEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]string{ // a part of each result
		"second-opinion": `"team":"billing"`, "improve-text": `"rounds":3`, "invoice-list": `"unreadable":1`, "incident-report": `"cause":"A worn bearing"`,
	}
	for _, template := range pipeline.Templates() {
		t.Run(template.Slug, func(t *testing.T) {
			t.Parallel()
			h := build(t, nil)
			h.work()
			run := h.startSample(template.Document)
			require.Eventually(t, func() bool { return h.helpOn(run) }, time.Minute, 50*time.Millisecond)
			p := h.progress(run)
			require.Equal(t, engine.RunCompleted, p.Run.State, p.Run.Failure)
			h.in(func(ctx context.Context, tx tenants.Tx) error {
				result, err := engine.Value(ctx, tx, p.Run.Result)
				require.Contains(t, string(result.Bytes), ends[template.Slug])
				return err
			})
		})
	}
}

// startSample begins a run of a document on its sample, started by nobody, so that the
// owner may decide.
func (h *house) startSample(document pipeline.Document) engine.RunID {
	h.t.Helper()
	input, files, err := document.SampleInput()
	require.NoError(h.t, err)
	id := h.publish(string(document.JSON()))
	var started engine.Started
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		started, err = h.engine.Start(ctx, tx, engine.StartRequest{
			Pipeline: id, Input: input, Files: files, Sample: true, Key: tenants.NewID[engine.Run]().String(),
		})
		return err
	})
	return started.Run.ID
}

// helpOn agrees to what is asked and sends what is waited for; it tells whether the run
// has ended.
func (h *house) helpOn(run engine.RunID) bool {
	h.t.Helper()
	p := h.progress(run)
	for step, wait := range p.Waits {
		switch wait.Kind {
		case engine.WaitReview:
			h.agree(step)
		case engine.WaitEvent:
			h.in(func(ctx context.Context, tx tenants.Tx) error {
				_, err := h.engine.SendEvent(ctx, tx, engine.Event{
					Name: wait.EventName, Key: wait.EventKey, Data: []byte(`{"cause":"A worn bearing","by":"J. Lindqvist"}`), Sender: "a test", SenderID: wait.ID.String(),
				})
				return err
			})
		}
	}
	return p.Run.State.Final()
}

// agree answers the review of a step, if it is still open.
func (h *house) agree(step engine.StepRunID) {
	h.t.Helper()
	err := h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		if err != nil || !detail.Open() {
			return err
		}
		_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, review.Approve, ""))
		return err
	})
	if errors.Is(err, review.ErrNotFound) || errors.Is(err, review.ErrNotOpen) || errors.Is(err, review.ErrAlreadyDecided) || errors.Is(err, engine.ErrNotWaiting) {
		return
	}
	require.NoError(h.t, err)
}
