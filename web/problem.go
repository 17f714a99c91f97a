package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/app/trigger"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// problem is what becomes of an error: a status, a heading that says what happened, a
// sentence that says what to do, and whether it is ours to look into.
type problem struct {
	status   int
	heading  string
	sentence string
	logged   bool
	wait     time.Duration // until it is worth trying again; 0 says nothing about it
}

// The answers that several errors share.
var (
	lost = problem{status: http.StatusNotFound, heading: "There is nothing at this address",
		sentence: "The address may be mistyped, or what was here is gone. Check the address, or start from the beginning."}
	broken = problem{status: http.StatusInternalServerError, logged: true, heading: "This did not work, and it is our fault",
		sentence: "Please try again in a moment."}
	away = problem{status: http.StatusServiceUnavailable, logged: true, heading: "We cannot answer right now",
		sentence: "The database is not answering. This usually passes within a minute. Please try again then.", wait: 20 * time.Second}
	overtaken = problem{status: http.StatusConflict, heading: "Somebody was faster",
		sentence: "This changed after you opened it. Go back, load the page again and look at what is there now."}
)

// problems is the table of the errors that can be told by comparing. The first that
// fits counts.
var problems = []struct {
	err error
	problem
}{
	{errNotFound, lost},
	{errSignedOut, problem{status: http.StatusUnauthorized, heading: "You are signed out", sentence: "Sign in to go on."}},
	{errForeign, problem{status: http.StatusForbidden, heading: "We did not do this",
		sentence: "This was not asked for by one of our own pages, or your browser does not say where it comes from. Open the page here and try again."}},
	{errHost, problem{status: http.StatusForbidden, heading: "This computer has another name",
		sentence: "In local mode the pages answer only under the address that was printed at the start. Open that one."}},
	{errTooOften, problem{status: http.StatusTooManyRequests, heading: "Too many tries", sentence: "Wait a little, then try again."}},

	{tenants.ErrNotMember, lost},
	{tenants.ErrNoUser, lost},
	{tenants.ErrNoSecret, problem{status: http.StatusNotFound, heading: "There is no such secret",
		sentence: "The address may be mistyped, or somebody deleted it. Look for it among the secrets."}},
	{tenants.ErrNoProviderKey, problem{status: http.StatusNotFound, heading: "There is no such key",
		sentence: "The address may be mistyped, or somebody removed it. Look for it among the provider keys."}},
	{tenants.ErrNoOldKey, problem{status: http.StatusConflict, heading: "The key before is gone",
		sentence: "Its time is over, or somebody erased it. Nothing was changed."}},
	{tenants.ErrKeyMoved, overtaken},
	{tenants.ErrTestedJustNow, problem{status: http.StatusTooManyRequests, heading: "This key was tested a moment ago",
		sentence: "Each test is a call that the provider bills. Wait ten seconds and test it again.", wait: 10 * time.Second}},
	{tenants.ErrSealed, problem{status: http.StatusConflict, heading: "This secret cannot be opened",
		sentence: "It was stored under another key of this installation. An owner or admin must enter it again."}},
	{tenants.ErrAlreadyMember, problem{status: http.StatusConflict, heading: "This person is in the workspace already", sentence: "There is nothing left to do."}},
	{tenants.ErrBadCode, problem{status: http.StatusUnprocessableEntity, heading: "This code does not work",
		sentence: "It is wrong, too old, used, or replaced by a newer one. Take the code from the newest mail."}},
	{tenants.ErrTooManyTries, problem{status: http.StatusTooManyRequests, heading: "Too many tries", sentence: "Wait a little, then ask for a new code."}},

	{pipeline.ErrNotFound, problem{status: http.StatusNotFound, heading: "There is no such pipeline",
		sentence: "The address may be mistyped, or the pipeline was removed. Look for it among the pipelines."}},
	{errChangedSince, overtaken},
	{errNoStep, problem{status: http.StatusNotFound, heading: "The draft has no such step",
		sentence: "Somebody may have removed it. Open the draft and look at its outline; Undo brings back what was removed."}},
	{errNoKey, problem{status: http.StatusBadRequest, heading: "This form is not complete",
		sentence: "It came without its one-time key, so it might be sent twice. Load the form again and send it from there."}},
	{pipeline.ErrDraftMoved, overtaken},
	{trigger.ErrBadKey, problem{status: http.StatusUnprocessableEntity, heading: "This key cannot be used", sentence: "A key has up to 200 characters. Shorten it and send the form again."}},
	{trigger.ErrNoFormKey, problem{status: http.StatusBadRequest, heading: "This form is not complete",
		sentence: "It came without its one-time key, so it might be sent twice. Load the form again and send it from there."}},

	{engine.ErrNoRun, problem{status: http.StatusNotFound, heading: "There is no such run",
		sentence: "The address may be mistyped, or the run was removed. Look for it among the runs."}},
	{engine.ErrNoPart, problem{status: http.StatusNotFound, heading: "The run has no such part",
		sentence: "The address may be mistyped. Open the run and go on from its timeline."}},
	{engine.ErrNoValue, problem{status: http.StatusNotFound, heading: "There is no such value",
		sentence: "The address may be mistyped, or what the run kept was cleaned up."}},
	{engine.ErrTooLarge, problem{status: http.StatusRequestEntityTooLarge, heading: "This is too large", sentence: "A value can have up to 32 MB. Make it smaller and try again."}},
	{engine.ErrNotLive, problem{status: http.StatusConflict, heading: "This pipeline is not published yet",
		sentence: "Only a published pipeline can run. Publish it first."}},
	{engine.ErrEnded, problem{status: http.StatusConflict, heading: "This run has ended already", sentence: "Nothing was changed. Load the run’s page to see how it ended."}},
	{engine.ErrNoEvent, problem{status: http.StatusNotFound, heading: "There is no such event",
		sentence: "The address may be mistyped, or the event is gone: events are kept for 30 days. Look for it among the events."}},
	{engine.ErrNoCallback, lost},
	{engine.ErrOtherEvent, problem{status: http.StatusConflict, heading: "This was sent before, and said something else",
		sentence: "An event of this name with the same number is on record, with another key or other data. Nothing was sent. Load the form again and send it from there."}},
	{engine.ErrNotRunning, problem{status: http.StatusConflict, heading: "This run is not running", sentence: "Only a run that is running can be paused. Load the run’s page to see where it is."}},
	{engine.ErrNotPaused, problem{status: http.StatusConflict, heading: "This run is not paused", sentence: "There is nothing to resume. Load the run’s page to see where it is."}},
	{engine.ErrAtWork, problem{status: http.StatusConflict, heading: "A step of this run is under way",
		sentence: "Nothing was changed. Wait until the run waits for something, or pause it, and move it then."}},
	{engine.ErrOtherVersion, overtaken},
	{engine.ErrMoved, overtaken},
	{engine.ErrNoShare, problem{status: http.StatusNotFound, heading: "This link opens nothing any more",
		sentence: "It has ended, or was never whole. Ask whoever gave it to you for another."}},
	{engine.ErrSharesOff, problem{status: http.StatusForbidden, heading: "This workspace gives no links to its runs",
		sentence: "An owner of the workspace can allow them."}},
	{engine.ErrNoBulk, problem{status: http.StatusNotFound, heading: "There is nothing at this address",
		sentence: "The address may be mistyped. What was done to each run is in its own record."}},
	{engine.ErrBulkEnded, problem{status: http.StatusConflict, heading: "This has ended already", sentence: "There is nothing left to stop."}},
	{engine.ErrNotFailed, problem{status: http.StatusConflict, heading: "This run has not failed", sentence: "Only a run that has failed can be tried again. Load the run’s page to see where it is."}},
	{engine.ErrNotSkippable, problem{status: http.StatusConflict, heading: "This step cannot be skipped now",
		sentence: "Only a step that waits, or one at which the run failed, can be skipped. Load the run’s page to see where it is."}},
	{engine.ErrNotReplayable, problem{status: http.StatusConflict, heading: "This step cannot be put to another model",
		sentence: "Only a step that asks AI and has ended can. Load the run’s page to see where it is."}},
	{engine.ErrNoReplay, problem{status: http.StatusNotFound, heading: "There is nothing at this address",
		sentence: "The address may be mistyped. What a step was asked of other models is listed where it is put to one."}},
	{engine.ErrNoRoom, problem{status: http.StatusConflict, heading: "The pipeline takes no more runs at once",
		sentence: "Others of its runs have not ended, and it skips what comes meanwhile. Try again when one has ended."}},
	{engine.ErrNotWaiting, problem{status: http.StatusConflict, heading: "Nobody waits for this any more",
		sentence: "The step has gone on. Load the run’s page to see where it is."}},

	{review.ErrNotFound, problem{status: http.StatusNotFound, heading: "There is no such review",
		sentence: "The address may be mistyped, or the review was removed. Look for it among the reviews."}},
	{review.ErrUnknownLink, problem{status: http.StatusNotFound, heading: "We cannot open this link",
		sentence: "It may be cut off, or replaced by a newer one. Open it from the newest mail about this request, whole and unchanged. If that does not help, ask whoever sent it."}},
	{review.ErrLinkExpired, problem{status: http.StatusGone, heading: "This link is too old", sentence: "Ask for a new one, and it comes by mail."}},
	{review.ErrNotYours, problem{status: http.StatusForbidden, heading: "This review asks somebody else",
		sentence: "Only the people who were asked can answer it."}},
	{review.ErrRequester, problem{status: http.StatusForbidden, heading: "Somebody else must decide this",
		sentence: "You started this run, and who starts a run may not decide its review."}},
	{review.ErrProofNeeded, problem{status: http.StatusForbidden, heading: "We must know that it is you", sentence: "Sign in with the address that the review was sent to, then answer."}},
	{review.ErrChanged, problem{status: http.StatusConflict, heading: "This changed since you opened it",
		sentence: "Nothing was decided. Load the page again, look at what is there now, and decide anew."}},
	{review.ErrAlreadyDecided, problem{status: http.StatusConflict, heading: "Already decided", sentence: "This review has its answer. Nothing was changed."}},
	{review.ErrNotOpen, problem{status: http.StatusConflict, heading: "No decision is needed any more", sentence: "This review has ended. Nothing was changed."}},
	{review.ErrNobodyToAsk, problem{status: http.StatusConflict, heading: "Nobody is left who may decide this",
		sentence: "Everybody who was asked has left or may not decide. Ask an admin of the workspace."}},
	{review.ErrBadQuestion, broken},

	{mail.ErrNotFound, lost},
	{mail.ErrBadMessage, problem{status: http.StatusUnprocessableEntity, heading: "This mail cannot be sent", sentence: "Check the address, the subject and the length of the text."}},
	{mail.ErrBusy, problem{status: http.StatusConflict, heading: "This mail is on its way", sentence: "It is being sent right now. Look again in a moment."}},

	{ledger.ErrBadCap, problem{status: http.StatusUnprocessableEntity, heading: "This cap cannot be set", sentence: "Write an amount in dollars, such as 50 or 12.50."}},
	{ledger.ErrNoRequest, problem{status: http.StatusNotFound, heading: "There is no such request",
		sentence: "The address may be mistyped. What waits for a decision stands among the caps."}},
	{ledger.ErrNotAsking, problem{status: http.StatusConflict, heading: "This is decided already", sentence: "Nothing was changed. Load the page again to see what became of it."}},
	{ledger.ErrSamePerson, problem{status: http.StatusForbidden, heading: "A second person must confirm this",
		sentence: "You agreed already. Somebody else who may change spend caps confirms it."}},
	{ledger.ErrNoSecond, problem{status: http.StatusConflict, heading: "Nobody else may confirm this",
		sentence: "It is above the amount from which two people are needed, and you are the only one here who may change spend caps. Add another owner, admin or finance member, or change the rule."}},
	{ledger.ErrUnknownPrice, problem{status: http.StatusConflict, heading: "The price of this model is not known",
		sentence: "Without a price we cannot keep to a cap, so the model is not called. Choose another model."}},

	{context.Canceled, problem{status: http.StatusRequestTimeout, heading: "Your browser left before we were done", sentence: "Load the page again to see where things are."}},
	{context.DeadlineExceeded, problem{status: http.StatusServiceUnavailable, logged: true, heading: "This took too long",
		sentence: "We stopped after a while. Please try again in a moment.", wait: 20 * time.Second}},
}

// problemOf looks an error up: what its type tells about itself first, then the table.
// What nobody knows is our fault.
func problemOf(err error) problem {
	if known, ok := problemByType(err); ok {
		return known
	}
	for _, known := range problems {
		if errors.Is(err, known.err) {
			return known.problem
		}
	}
	switch {
	case tenants.IsLostRace(err):
		return overtaken
	case tenants.IsTrouble(err):
		return away
	}
	return broken
}

// problemByType words the errors that carry their own details.
func problemByType(err error) (problem, bool) {
	if forbidden, ok := errors.AsType[*tenants.Forbidden](err); ok {
		return problem{status: http.StatusForbidden, heading: "You cannot do this here", sentence: forbidden.Action.Refusal(nil)}, true
	}
	if invalid, ok := errors.AsType[*tenants.Invalid](err); ok {
		return unfit(invalid.Message), true
	}
	if invalid, ok := errors.AsType[*review.Invalid](err); ok && len(invalid.Problems) > 0 {
		return unfit(invalid.Problems[0].Message), true
	}
	if invalid, ok := errors.AsType[*pipeline.Invalid](err); ok && len(invalid.Problems) > 0 {
		return unfit(invalid.Problems[0].Message), true
	}
	if bad, ok := errors.AsType[*pipeline.BadEdit](err); ok {
		return problem{status: http.StatusConflict, heading: "This cannot be done to the draft", sentence: bad.Reason}, true
	}
	if bad, ok := errors.AsType[*engine.BadEvent](err); ok {
		return unfit(bad.Reason), true
	}
	if _, ok := errors.AsType[*engine.NoFit](err); ok {
		return problem{status: http.StatusConflict, heading: "The run does not fit this version",
			sentence: "Nothing was changed. Open “Move to another version” on the run’s page to see which steps do not fit, and why."}, true
	}
	if many, ok := errors.AsType[*engine.TooManyRuns](err); ok {
		return problem{status: http.StatusTooManyRequests, heading: "Too many runs are open",
			sentence: fmt.Sprintf("This workspace can have %s open at once. Nothing was started. Wait until some have ended, or cancel those that are not needed.",
				ui.Plural(int64(many.Quota), "run", "runs"))}, true
	}
	if other, ok := errors.AsType[*engine.OtherStart](err); ok {
		return problem{status: http.StatusConflict, heading: "This was started before, with other input",
			sentence: "The first start with this form or key was " + runTitle(other.First) + ", “" + other.First.Name + "”. Nothing was started now. Open that run; to start another one, open the start page anew or give another key."}, true
	}
	if bad, ok := errors.AsType[*engine.BadBulk](err); ok {
		return unfit(bad.Reason), true
	}
	if never, ok := errors.AsType[*engine.NotRerunnable](err); ok {
		return problem{status: http.StatusConflict, heading: "The run cannot be done again from there", sentence: never.Why}, true
	}
	if again, ok := errors.AsType[*engine.NotRetryable](err); ok {
		return problem{status: http.StatusConflict, heading: "Trying again would not help",
			sentence: again.Why + " Skip the step with a value, or run again from an earlier step with other values."}, true
	}
	if bad, ok := errors.AsType[*expr.BadJSON](err); ok {
		return unfit("A value is not JSON that we can take: " + bad.Reason + "."), true
	}
	if amount, ok := errors.AsType[*ledger.AmountError](err); ok {
		return unfit(amount.Reason), true
	}
	if price, ok := errors.AsType[*ledger.PriceError](err); ok {
		return unfit(price.Reason), true
	}
	if tries, ok := errors.AsType[*tenants.TooManyTries](err); ok {
		return tooMany("ask for a new code", tries.Wait), true
	}
	if often, ok := errors.AsType[*tooOften](err); ok {
		return tooMany("try", often.wait), true
	}
	if early, ok := errors.AsType[*review.NotDue](err); ok {
		return problem{status: http.StatusConflict, heading: "This review is still open",
			sentence: "Its deadline is " + ui.When(early.Due, early.Due, time.UTC) + "."}, true
	}
	if body, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(body.Limit), true
	}
	if said, ok := errors.AsType[*echo.HTTPError](err); ok {
		return ofStatus(said.Code), true
	}
	return problem{}, false
}

func unfit(sentence string) problem {
	return problem{status: http.StatusUnprocessableEntity, heading: "Something in the form needs fixing", sentence: sentence}
}

func tooMany(what string, wait time.Duration) problem {
	p := problem{status: http.StatusTooManyRequests, heading: "Too many tries", sentence: "You can " + what + " again now.", wait: wait}
	if wait > 0 {
		p.sentence = fmt.Sprintf("You can %s again in %s.", what, ui.Duration(max(wait, time.Second)))
	}
	return p
}

// tooLarge names the limit that a person knows: of a file where the form takes one.
func tooLarge(limit int64) problem {
	p := problem{status: http.StatusRequestEntityTooLarge, heading: "This form is too large",
		sentence: "All its fields together can have up to " + ui.Bytes(limit) + ". Shorten the longest and send it again."}
	if limit == uploadBytes {
		p.heading = "This file is too large"
		p.sentence = "A file can have up to 10 MB. Nothing was saved. Choose a smaller file and send the form again."
	}
	return p
}

// ofStatus words what the router and the form parser find.
func ofStatus(status int) problem {
	switch status {
	case http.StatusNotFound:
		return lost
	case http.StatusMethodNotAllowed:
		return problem{status: status, heading: "This address does not take that",
			sentence: "The page was asked for in a way it does not know. Open it from a link or its own form."}
	}
	if status >= 400 && status < 500 {
		return problem{status: status, heading: "We could not read this request",
			sentence: "What your browser sent is not complete. Load the page again and send the form from there."}
	}
	return broken
}
