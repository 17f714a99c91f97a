package engine

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// Call is one try of a step's outside call.
type Call struct {
	Tenant  tenants.ID
	Run     RunID
	StepRun StepRunID
	Attempt int
	Key     string                // idempotency key, the same for each try
	Input   []byte                // JSON of AIInput, EmailInput, HTTPInput
	OwnKey  tenants.ProviderKeyID // the workspace's key that pays; zero: the installation's
	Live    func(text string)     // takes what a model writes, piece by piece, and returns at once
}

// Reply is what came of a call: an output or a failure.
type Reply struct {
	Output     []byte    // JSON object; formulas read it as steps.<id>
	Files      []Content // that the output names by their digests
	Note       string    // what a reader of the timeline should know
	Failure    *Failure
	Retryable  bool
	NotCalled  bool          // a limit of ours left no room: the step waits for RetryAfter, which uses up no try
	Unsure     bool          // the call may have arrived, and its answer is not known
	RetryAfter time.Duration // the other side's wish; 0: none
	Bill       *Bill         // nil: nothing was billed
	Sent       []byte        // to a model, without secrets; kept where its step says so
	Received   []byte        // from a model, as it came; kept unless its step says no
}

// Bill is what a model call used, as the provider says; Unknown where it could not
// tell, which books the reserved sum as an estimate.
type Bill struct {
	Unknown   bool
	Model     string // as billed
	Tokens    ledger.Tokens
	RequestID string
	Finish    string
	Latency   time.Duration
}

// Caller makes the outside calls of one kind of step. It may be called again with the
// same key after its reply was lost.
type Caller interface {
	Call(ctx context.Context, call Call) Reply
}

// Most time a call may take where the step says nothing.
const (
	defaultAITimeout = 10 * time.Minute
	defaultTimeout   = time.Minute
)

// longestCall bounds what a step may ask for: a call is never older than a day.
const longestCall = 24 * time.Hour

func timeoutOf(node *pipeline.Node) time.Duration {
	switch {
	case node.Step.Timeout != nil:
		return min(time.Duration(*node.Step.Timeout), longestCall)
	case node.Kind() == pipeline.KindAI:
		return defaultAITimeout
	}
	return defaultTimeout
}

// holdID names the money of one try of a step, which was put off so often. It can be worked out again after a
// crash, when nothing else is left of the call.
func holdID(step StepRunID, attempt, putOff int) ledger.HoldID {
	name := binary.BigEndian.AppendUint32(step[:], uint32(attempt))
	if putOff > 0 {
		name = binary.BigEndian.AppendUint32(name, uint32(putOff))
	}
	return ledger.HoldID(uuid.NewSHA1(holdSpace, name))
}

var holdSpace = uuid.MustParse("5f1c1c1e-3b0a-4c57-9d0f-6a0d5d1f7a10")
