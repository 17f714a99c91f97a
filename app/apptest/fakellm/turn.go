package fakellm

import (
	"encoding/json"
	"time"
)

// Turn is what one request meets. The zero Turn is a good answer. Fields combine
// where that makes sense.
type Turn struct {
	// Before the answer.
	OnArrival func()            // called when the request has arrived
	Delay     time.Duration     // waits before answering; ends early when the caller leaves
	Hang      bool              // never answers
	Drop      bool              // closes the connection without a word
	Header    map[string]string // sent with the answer, as in Retry-After

	// An error instead of an answer, when Status is set.
	Status  int
	Code    string
	Type    string
	Message string
	// Body is sent with Status (200 when that is 0) instead of anything in the
	// format; ContentType belongs to it.
	Body        string
	ContentType string

	// The answer.
	Text      string   // empty: made from the request; see Blank
	Blank     bool     // content ""
	Null      bool     // content null
	NoChoices bool     // an empty list of choices
	Pieces    []string // JSON strings sent as the pieces, exactly; instead of Text
	Refusal   string
	Finish    string // empty: "stop", or "length" at the limit of tokens
	NoFinish  bool   // no finish reason at all
	Model     string // the model as billed; empty: the one asked for

	// How it is sent.
	Whole       bool   // in one piece although a stream was asked for
	CutAfter    int    // breaks the connection after so many pieces
	EndAfter    int    // ends in good order after so many pieces, without finish or usage
	StallAfter  int    // says nothing more after so many pieces
	ErrorAfter  int    // sends ErrorEvent after so many pieces, and ends
	ErrorEvent  string // JSON
	BrokenAfter int    // sends a piece that is not JSON after so many pieces
	NoDone      bool   // leaves out the closing mark

	// The bill.
	Usage       json.RawMessage // the usage block; nil: counted
	NoUsage     bool            // no usage block
	UsageCut    bool            // breaks the connection after the finish reason, before the usage
	Dense       bool            // counts one token per byte, the most a tokenizer can
	IgnoreLimit bool            // writes past the limit of tokens
}

// Share is a part of a mix: of 1000 requests, PerMille meet Turn.
type Share struct {
	PerMille int
	Turn     Turn
}
