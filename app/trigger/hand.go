package trigger

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Starter begins runs; *engine.Engine is one.
type Starter interface {
	// Start begins a run in the caller's transaction, StartNow in one of its own.
	Start(ctx context.Context, tx tenants.Tx, request engine.StartRequest) (engine.Started, error)
	StartNow(ctx context.Context, tenant tenants.ID, request engine.StartRequest) (engine.Started, error)
}

// ByHand is a start from a form.
type ByHand struct {
	Pipeline pipeline.ID
	Input    []byte                // JSON record of the input fields
	Files    []pipeline.StoredFile // whose digests the input names
	Sample   bool                  // the input is the pipeline's own sample
	Fresh    bool                  // no step takes an earlier answer
	By       tenants.Membership
	FormKey  string // given to the form when it was drawn; sending it again is the same start
	Once     Once   // counts instead of the form's key, where it has one
}

// Once makes a start happen once for a key that whoever starts it knows, such as an
// order's number, for engine.KeysKept: the same start again finds the first run, and
// another one under the key is refused with an *engine.OtherStart.
type Once struct {
	Key   string
	Scope Scope
}

// Scope is how far a key is known.
type Scope string

// A key is known to the pipeline, which is what an unset scope means, or to the workspace.
const (
	ScopePipeline  Scope = "pipeline"
	ScopeWorkspace Scope = "workspace"
)

// MaxOnceKey bounds the key of a start, in bytes.
const MaxOnceKey = 200

// ErrBadKey tells that a text cannot be the key of a start.
var ErrBadKey = errors.New("not the key of a start")

// check refuses a key that is too long, or known nowhere.
func (o Once) check() error {
	if len(o.Key) > MaxOnceKey || !utf8.ValidString(o.Key) || strings.ContainsRune(o.Key, 0) || o.Scope != "" && o.Scope != ScopePipeline && o.Scope != ScopeWorkspace {
		return ErrBadKey
	}
	return nil
}

// key is unique to what is started within the scope.
func (o Once) key(of pipeline.ID) string {
	if o.Scope == ScopeWorkspace {
		return "once:workspace:" + o.Key
	}
	return "once:pipeline:" + of.String() + ":" + o.Key
}

// ErrNoFormKey tells that a form came without its key, so it cannot be told from one
// that was sent before.
var ErrNoFormKey = errors.New("the form has no key")

const maxFormKey = 100

// FitsAsKey tells whether a text can be the key of a form.
func FitsAsKey(text string) bool { return text != "" && len(text) <= maxFormKey }

// key is unique to the form and the person it was drawn for.
func (h ByHand) key() string {
	if h.Once.Key != "" {
		return h.Once.key(h.Pipeline)
	}
	return "hand:" + h.By.User.ID.String() + ":" + h.FormKey
}

// check refuses a start that could not be told from another.
func (h ByHand) check() error {
	if !FitsAsKey(h.FormKey) {
		return ErrNoFormKey
	}
	return h.Once.check()
}

// Earlier finds the run that this form began before; engine.ErrNoRun where it began
// none.
func (h ByHand) Earlier(ctx context.Context, tx tenants.Tx) (engine.Run, error) {
	return engine.RunByKey(ctx, tx, h.key())
}

// Start begins the run in the caller's transaction, or finds the one that this form began
// before.
func (h ByHand) Start(ctx context.Context, tx tenants.Tx, starter Starter) (engine.Run, error) {
	if err := h.check(); err != nil {
		return engine.Run{}, err
	}
	started, err := starter.Start(ctx, tx, h.request())
	return started.Run, err
}

// StartNow is Start in a transaction of its own. A started run is durable.
func (h ByHand) StartNow(ctx context.Context, tenant tenants.ID, starter Starter) (engine.Run, error) {
	if err := h.check(); err != nil {
		return engine.Run{}, err
	}
	started, err := starter.StartNow(ctx, tenant, h.request())
	return started.Run, err
}

func (h ByHand) request() engine.StartRequest {
	return engine.StartRequest{
		Pipeline: h.Pipeline, Input: h.Input, Files: h.Files, Sample: h.Sample, Fresh: h.Fresh, By: h.By.User.ID, Actor: tenants.ByMember(h.By),
		Key: h.key(),
	}
}
