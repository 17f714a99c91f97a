package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// reserve works out the money that a step's call needs before it may begin; nil for a
// call that costs nothing. A model without a known price is not called. Prices and keys are
// there, as priced sees to.
func (d *decider) reserve(node *pipeline.Node, row StepRun, input []byte) (*ledger.Hold, *Failure) {
	if node.Kind() != pipeline.KindAI {
		return nil, nil
	}
	var ask AIInput
	if err := json.Unmarshal(input, &ask); err != nil || len(ask.Models) == 0 {
		return nil, &Failure{Class: ClassInternal, Message: "The step's stored request cannot be read."}
	}
	ask = row.Chain.asked(ask)
	payer, key := d.payer(ask.Models[0])
	quote, err := d.scope.prices.PaidBy(payer).Quote(ask.Models[0], d.now, timeoutOf(node), d.inputBound(ask), int64(ask.MaxTokens))
	if errors.Is(err, ledger.ErrUnknownPrice) {
		return nil, &Failure{Class: ClassNoPrice, Detail: err.Error(),
			Message: fmt.Sprintf("The price of the model “%s” is not known, so it is not called. Choose another model.", ask.Models[0])}
	}
	if err != nil {
		return nil, &Failure{Class: ClassInternal, Message: "The price of the call could not be worked out.", Detail: err.Error()}
	}
	if failure := d.tooDear(node, row, quote.Amount); failure != nil {
		return nil, failure
	}
	return &ledger.Hold{
		ID: holdID(row.ID, row.Attempt, row.Chain.PutOff), Run: ledger.RunID(d.run.ID), StepRun: ledger.StepRunID(row.ID),
		Attempt: row.Attempt, Quote: quote, Payer: payer, Key: key, Lifetime: timeoutOf(node),
	}, nil
}

// tooDear refuses a call that may cost more than its step allows: all its tries together,
// where the step goes through models, and else each by itself. Calls that were lost with
// their worker count for the caps only: a step does not fail because programs died.
func (d *decider) tooDear(node *pipeline.Node, row StepRun, amount ledger.Micros) *Failure {
	limit := ledger.Micros(node.AI().MaxCost)
	spent, left := ledger.Micros(0), ""
	if d.chains(node) && row.Chain.Spent > 0 {
		spent = ledger.Micros(row.Chain.Spent)
		left = fmt.Sprintf(", of which %v is spent", spent)
	}
	if limit == 0 || amount+spent <= limit {
		return nil
	}
	return &Failure{Class: ClassTooDear, Message: fmt.Sprintf(
		"This call may cost up to %v, and the step allows at most %v%s. Shorten what is asked, allow a shorter answer, or raise the step's limit.", amount, limit, left)}
}

// makeCall makes the outside call that a commit began, and keeps what came of it as the
// next outcome.
func (d *drive) makeCall(ctx context.Context, next call) {
	d.step, d.groups, d.scope.callInput = &next.row, next.groups, next.input
	callCtx, cancel := context.WithTimeout(ctx, timeoutOf(next.node))
	defer cancel()
	asked := Call{
		Tenant: d.tenant, Run: d.run.ID, StepRun: next.row.ID, Attempt: next.row.Attempt,
		Key: next.row.key(), Input: next.given(),
	}
	if next.hold != nil {
		asked.OwnKey = tenants.ProviderKeyID(next.hold.Key)
	}
	live := newLiveText(d.DB, asked)
	defer live.end()
	asked.Live = live.add
	reply := d.Callers[next.node.Kind()].Call(callCtx, asked)
	d.outcome = d.outcomeOf(next, reply)
}

// outcomeOf turns a reply into what decide acts on.
func (d *drive) outcomeOf(next call, reply Reply) outcome {
	out := outcome{kind: done, output: reply.Output, files: reply.Files, note: reply.Note}
	out.sent, out.received = kept(next.node, reply)
	if next.hold != nil {
		settlement := d.bill(*next.hold, reply.Bill)
		out.settle = &settlement
		if settlement.settlement != nil {
			out.cost = int64(cost(*next.hold, *settlement.settlement))
		}
	}
	failure := reply.Failure
	if failure == nil {
		out.decoded, failure = readOutput(reply.Output)
	}
	if failure != nil {
		out.kind, out.output, out.failure, out.files = failed, nil, failure, nil
		out.retryable, out.unsure, out.retryAfter, out.uncalled = reply.Retryable, reply.Unsure, reply.RetryAfter, reply.NotCalled
	}
	return out
}

// maxKept is the most that is kept of what went to a model, or came from it, in bytes.
const maxKept = 16 << 20

// kept is what the step keeps of a call to a model, beside the answer.
func kept(node *pipeline.Node, reply Reply) (sent, received []byte) {
	ask := node.AI()
	if ask == nil || ask.Keep == pipeline.KeepAnswer {
		return nil, nil
	}
	if len(reply.Received) > 0 && len(reply.Received) <= maxKept {
		received = reply.Received
	}
	if ask.Keep == pipeline.KeepSent && len(reply.Sent) > 0 && len(reply.Sent) <= maxKept {
		sent = reply.Sent
	}
	return sent, received
}

// readOutput reads an output as the steps that follow do.
func readOutput(output []byte) (any, *Failure) {
	if len(output) > MaxValue {
		return nil, &Failure{Class: ClassTooLarge, Message: "The answer is larger than 32 MiB, the most a step may hand on."}
	}
	if len(output) == 0 {
		return nil, nil
	}
	decoded, err := expr.DecodeJSON(output)
	if err != nil {
		return nil, &Failure{Class: ClassFormula, Message: "The answer is not readable data. " + err.Error()}
	}
	return decoded, nil
}

// bill is how a call's hold ends: no bill means that the provider did no work.
func (d *drive) bill(reserved ledger.Hold, told *Bill) settle {
	if told == nil {
		return settle{release: reserved.ID}
	}
	var settlement ledger.Settlement
	if told.Unknown {
		settlement = ledger.SettleUnknown(reserved.ID)
	} else {
		settlement = d.scope.prices.Settle(reserved, told.Tokens, ledger.Receipt{
			Model: told.Model, RequestID: told.RequestID, Finish: told.Finish, Latency: told.Latency,
		})
	}
	return settle{settlement: &settlement}
}

func cost(reserved ledger.Hold, settlement ledger.Settlement) ledger.Micros {
	if settlement.Unknown {
		return reserved.Amount
	}
	return settlement.Cost
}
