package jobs

import (
	"context"
	"errors"
	"time"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// admission is leave to make one call.
type admission struct {
	access *Access
	key    llm.Credential
	old    *llm.Credential  // of the key before, while that is usable
	pass   *ledger.RatePass // nil where nothing is limited
	pace   *pace
	began  time.Time
}

// enter takes a place at the provider, first by what it bore of late and then by the limits
// that are set.
func (w *admission) enter(ctx context.Context, ask ledger.RateAsk) (*admission, *engine.Reply) {
	pace := w.access.paces.of(ask.Key.Name)
	if wait := pace.enter(w.began); wait > 0 {
		return nil, putOff(classLimitedHere, "The provider is busy, so fewer calls are made at once for a while.", wait)
	}
	w.pace = pace
	pass, delay, err := w.access.ask(ctx, ask)
	switch {
	case err != nil:
		pace.leave(time.Now(), left)
		return nil, putOff(engine.ClassInternal, "The limits of calls a minute could not be read just now, so the model was not called.", trouble)
	case delay.Wait > 0:
		pace.leave(time.Now(), left)
		return nil, putOff(classLimitedHere, barredWords(ask, delay.BarredBy), delay.Wait)
	}
	w.pass = pass
	return w, nil
}

// ask makes the call. Where the provider does not take a key that was changed, the one before
// is used while it may be: a refused key costs nothing.
func (w *admission) ask(ctx context.Context, registry *llm.Registry, req llm.Request) (llm.Answer, error) {
	if w == nil {
		return llm.Call(ctx, registry, req)
	}
	answer, err := askWith(ctx, registry, req, w.key)
	fault := new(llm.Error)
	if w.old == nil || !errors.As(err, &fault) || fault.Class != llm.ClassAuth || fault.Dispatched {
		return answer, err
	}
	answer, err = askWith(ctx, registry, req, *w.old)
	if err == nil {
		answer.Repairs = append(answer.Repairs, "The provider did not take the workspace's new key, so the one before was used.")
	}
	return answer, err
}

// askWith makes the call with a key, of which nothing comes back: a server may repeat it.
func askWith(ctx context.Context, registry *llm.Registry, req llm.Request, key llm.Credential) (llm.Answer, error) {
	req.Credential = key
	if key.Secret == "" {
		return llm.Call(ctx, registry, req)
	}
	masks := masksOf(key.Secret)
	if req.Live != nil {
		req.Live = newLiveMask(key.Secret, req.Live).write
	}
	answer, err := llm.Call(ctx, registry, req)
	maskAnswer(masks, &answer)
	if fault := new(llm.Error); errors.As(err, &fault) {
		fault.Message, fault.Detail = masks.Text(fault.Message), masks.Text(fault.Detail)
		maskAnswer(masks, &fault.Answer)
	}
	return answer, err
}

// settlePatience bounds how long the end of a call may take to note. What is not noted
// stays reserved, and flows back with time.
const settlePatience = 5 * time.Second

// leave tells what came of the call: a limit is corrected by what it used and by what the
// provider said, and calls get fewer or more.
func (w *admission) leave(ctx context.Context, answer llm.Answer, err error) {
	if w == nil {
		return
	}
	fault := new(llm.Error)
	failed := errors.As(err, &fault)
	took := time.Since(w.began)
	w.pace.leave(time.Now(), endOf(failed, fault, took))
	if w.pass == nil {
		return
	}
	out := outcomeOf(answer, failed, fault)
	out.Took = took
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	_ = w.access.db.InSystemTx(ctx, func(ctx context.Context, stx tenants.SystemTx) error {
		return ledger.SettleRate(ctx, stx, w.pass, out)
	})
}

// defaultPause is how long a provider is left alone that refuses calls for their number and
// does not say for how long.
const defaultPause = 2 * time.Second

func outcomeOf(answer llm.Answer, failed bool, fault *llm.Error) ledger.RateOutcome {
	usage, limits := &answer.Usage, answer.Limits
	if failed {
		usage, limits = fault.Usage, fault.Limits
	}
	out := ledger.RateOutcome{
		Whole: !failed, Requests: limits.Requests, RequestsLeft: limits.RequestsLeft, Tokens: limits.Tokens, TokensLeft: limits.TokensLeft,
	}
	switch {
	case usage != nil:
		used := usage.Total()
		out.Used = &used
	case !fault.Dispatched:
		out.Used = new(int64)
	}
	if failed && fault.Class == llm.ClassRateLimited {
		out.Pause = max(fault.RetryAfter, defaultPause)
	}
	return out
}
