package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/outbound"
)

// Classes of failures of a call to another system.
const (
	classBadAddress     = "bad_address"     // no address that may be called
	classUnreachable    = "unreachable"     // no such host, nobody there, or not allowed: which, is not told
	classInsecure       = "insecure"        // the other side's certificate is not in order
	classRedirect       = "redirect"        // a redirect that is not followed
	classTimeout        = "timeout"         // no answer in time
	classConnection     = "connection"      // the line broke
	classNoSecret       = "no_secret"       // a secret is missing, or may not go there
	classAuth           = "auth"            // the other side does not let us in
	classInvalidRequest = "invalid_request" // it does not take what was sent
	classNotFound       = "not_found"       // there is nothing at the address
	classConflict       = "conflict"        // it clashes with what is there already
	classRateLimited    = "rate_limited"    // asked too often
	classOverloaded     = "overloaded"      // too busy just now
	classServer         = "server"          // trouble of its own
	classBadAnswer      = "bad_answer"      // an answer that cannot be read, or is none that was meant
)

// again says whether a call may be made again after it failed.
type again int

const (
	never   again = iota // it would fail the same way, or was done already
	safely               // nothing was done, so any call may be repeated
	unknown              // it may have been done: only what gets data is repeated without a word
)

// meaning is what an answer, or its absence, says about a call.
type meaning struct {
	class string
	again again
	words string // why and what to do, behind what happened
}

const (
	inVain = " Trying again would fail the same way, so we stopped."
	later  = " That may pass by itself."
)

// statuses are the meanings of statuses that differ from those of their hundred.
var statuses = map[int]meaning{
	http.StatusUnauthorized:       {classAuth, never, "it does not let us in." + inVain + " Check the secret that this step uses."},
	http.StatusForbidden:          {classAuth, never, "it does not allow this." + inVain + " Check what the secret of this step may do there."},
	http.StatusProxyAuthRequired:  {classAuth, never, "it does not let us in." + inVain + " Check the address of this step."},
	http.StatusNotFound:           {classNotFound, never, "there is nothing at this address." + inVain + " Check the address, and what is inserted into it."},
	http.StatusGone:               {classNotFound, never, "there is nothing at this address any more." + inVain + " Check the address."},
	http.StatusRequestTimeout:     {classTimeout, safely, "it did not get the request in time, so nothing was done there." + later},
	http.StatusConflict:           {classConflict, never, "it clashes with what is there already." + inVain + " Look there whether it was done before."},
	http.StatusLocked:             {classConflict, never, "somebody else is at it there." + inVain + " Start this step again later."},
	http.StatusTooEarly:           {classOverloaded, safely, "it wants this a little later, and did nothing." + later},
	http.StatusTooManyRequests:    {classRateLimited, safely, "it was asked too often, and did nothing." + later},
	http.StatusNotImplemented:     {classInvalidRequest, never, "it does not know this method." + inVain + " Check the method of this step."},
	http.StatusServiceUnavailable: {classOverloaded, unknown, "it is too busy or down just now." + later},
}

// statusMeanings is what a status says that does not count as success.
func statusMeanings(status int) meaning {
	if m, ok := statuses[status]; ok {
		return m
	}
	switch status / 100 {
	case 3:
		return meaning{classRedirect, never, "that leads elsewhere, and is not followed." + inVain + " Enter the address it leads to."}
	case 4:
		return meaning{classInvalidRequest, never, "it does not take what was sent." + inVain + " Check the data and the address of this step; what it said stands under “Technical detail”."}
	case 5:
		return meaning{classServer, unknown, "it has trouble of its own." + later}
	}
	return meaning{classBadAnswer, never, "that does not count as success for this step." + inVain + " If it should, add it to what counts."}
}

// faults are the meanings of a call that got no answer, by whether it may have been sent.
var faults = map[outbound.Kind]struct{ unsent, sent meaning }{
	outbound.KindBadAddress: {meaning{classBadAddress, never, ""}, meaning{classBadAddress, never, ""}},
	// Alike in everything: that a name points inside is not told by how often it is tried.
	outbound.KindRefused:     {meaning{classUnreachable, safely, ""}, meaning{classUnreachable, safely, ""}},
	outbound.KindUnreachable: {meaning{classUnreachable, safely, ""}, meaning{classUnreachable, safely, ""}},
	outbound.KindInsecure:    {meaning{classInsecure, never, " Whoever runs it must renew the certificate."}, meaning{classInsecure, never, ""}},
	outbound.KindRedirect:    {meaning{classRedirect, never, " Enter the address it leads to."}, meaning{classRedirect, never, " Enter the address it leads to."}},
	outbound.KindTimeout:     {meaning{classTimeout, safely, " Nothing was sent." + later}, meaning{classTimeout, unknown, later}},
	outbound.KindBroken:      {meaning{classConnection, safely, " Nothing was sent." + later}, meaning{classConnection, unknown, later}},
	outbound.KindTooLarge:    {meaning{engine.ClassTooLarge, never, ""}, meaning{engine.ClassTooLarge, never, " The call itself arrived. Ask for less, or raise the step's limit."}},
	outbound.KindStopped:     {meaning{classConnection, safely, " Nothing was sent."}, meaning{classConnection, unknown, ""}},
}

// noAnswer is what follows from a call that got none.
func (c *httpCall) noAnswer(err error) engine.Reply {
	fault := &outbound.Error{Kind: outbound.KindBroken, Sent: true, Message: "The connection broke."}
	errors.As(err, &fault)
	m := faults[fault.Kind].unsent
	if fault.Sent {
		m = faults[fault.Kind].sent
	}
	return c.reply(m, fault.Message+m.words, "")
}

// refused is what follows from an answer that is no success.
func (c *httpCall) refused(got answer) engine.Reply {
	m := statusMeanings(got.status)
	wait := outbound.RetryAfter(got.header, time.Now())
	if got.status == http.StatusServiceUnavailable && wait > 0 {
		m.again = safely // asked to come again, we were not served
	}
	words := fmt.Sprintf("%s answered %s: %s", got.host, statusWords(got.status), m.words)
	if m.again == safely && wait > engine.LongestAsked {
		words = strings.TrimSuffix(words, later) + " It asks us to wait longer than a step waits by itself, so we stopped. Start this step again later."
	}
	reply := c.reply(m, words, c.detail(got))
	reply.RetryAfter = wait
	return reply
}

// reply makes a failure of a meaning. Of what may have been done, only a call that gets
// data is repeated without a word.
func (c *httpCall) reply(m meaning, words, detail string) engine.Reply {
	if m.again == unknown && c.sends() {
		words = strings.TrimSuffix(words, later) // whether it did is what matters then
	}
	return engine.Reply{
		Failure:   &engine.Failure{Class: m.class, Message: c.masks.Text(words), Detail: detail},
		Retryable: m.again == safely || m.again == unknown && !c.sends(),
		Unsure:    m.again == unknown,
	}
}

// statusWords write a status with its name, where it has one.
func statusWords(status int) string {
	if name := http.StatusText(status); name != "" {
		return fmt.Sprintf("%d (%s)", status, name)
	}
	return fmt.Sprint(status)
}

// maxDetail is how much of an answer stands in a failure, in bytes.
const maxDetail = 4 << 10

// detail is the other side's own text, without secrets.
func (c *httpCall) detail(got answer) string {
	text := fmt.Sprintf("HTTP %s", statusWords(got.status))
	if len(got.body) > 0 {
		text += "\n" + expr.Preview(c.masks.Bytes(got.body), maxDetail)
	}
	return text
}
