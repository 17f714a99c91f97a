package trigger

import (
	"context"
	"errors"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Starter begins runs; *engine.Engine is one.
type Starter interface {
	Start(ctx context.Context, tx tenants.Tx, request engine.StartRequest) (engine.Run, error)
}

// ByHand is a start from a form.
type ByHand struct {
	Pipeline pipeline.ID
	Input    []byte                // JSON record of the input fields
	Files    []pipeline.StoredFile // whose digests the input names
	Sample   bool                  // the input is the pipeline's own sample
	By       tenants.UserID
	FormKey  string // given to the form when it was drawn; sending it again is the same start
}

// ErrNoFormKey tells that a form came without its key, so it cannot be told from one
// that was sent before.
var ErrNoFormKey = errors.New("the form has no key")

const maxFormKey = 100

// Start begins the run, or finds the one that this form began before.
func (h ByHand) Start(ctx context.Context, tx tenants.Tx, starter Starter) (engine.Run, error) {
	if h.FormKey == "" || len(h.FormKey) > maxFormKey {
		return engine.Run{}, ErrNoFormKey
	}
	run, err := starter.Start(ctx, tx, engine.StartRequest{
		Pipeline: h.Pipeline, Input: h.Input, Files: h.Files, Sample: h.Sample, By: h.By,
		Key: "hand:" + h.By.String() + ":" + h.FormKey,
	})
	if err != nil {
		return engine.Run{}, err
	}
	return run, tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.MemberActor(h.By, ""), Action: "run_started", Target: tenants.Target{Kind: "run", ID: [16]byte(run.ID)},
	})
}
