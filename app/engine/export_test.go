package engine

import (
	"time"

	"tollgate/app/pipeline"
)

// NextTry is what follows from a failed reply at a try of a node: another after a pause,
// or the question whether the call arrived, or neither.
func NextTry(program *pipeline.Program, node *pipeline.Node, attempt int, reply Reply) (pause time.Duration, another, asks bool) {
	out := outcome{failure: reply.Failure, retryable: reply.Retryable, unsure: reply.Unsure, retryAfter: reply.RetryAfter}
	if call := node.HTTP(); call != nil && out.unsure && call.Unsure == pipeline.UnsureAsk {
		return 0, false, true
	}
	pause, another = nextTry(program.Document().Semantics, node, attempt, out)
	return pause, another, false
}
