package fakellm

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Turn is what one request meets, in whichever format it is asked. The zero Turn is a
// good answer. Fields combine where that makes sense.
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
	Type    string // empty: the one that the provider sends with Status
	Message string
	Details json.RawMessage // Gemini's list of details
	// Body is sent with Status (200 when that is 0) instead of anything in the
	// format; ContentType belongs to it.
	Body        string
	ContentType string

	// The answer.
	Text      string   // empty: made from the request; see Blank
	Blank     bool     // content ""
	Null      bool     // content null, or the format's nearest to it
	NoChoices bool     // an empty list of choices, blocks or candidates
	Pieces    []string // JSON strings sent as the pieces, exactly; instead of Text
	Refusal   string
	Finish    string // in the format's own words; empty: done, or cut at the limit of tokens
	NoFinish  bool   // no finish reason at all
	Model     string // the model as billed; empty: the one asked for

	// How it is sent.
	Whole       bool          // in one piece although a stream was asked for
	Pace        time.Duration // between two pieces
	CutAfter    int           // breaks the connection after so many pieces
	EndAfter    int           // ends in good order after so many pieces, without finish or usage
	StallAfter  int           // says nothing more after so many pieces
	ErrorAfter  int           // sends ErrorEvent after so many pieces, and ends
	ErrorEvent  string        // JSON
	BrokenAfter int           // sends a piece that is not JSON after so many pieces
	Truncate    int           // is cut at the limit of tokens after so many pieces
	NoDone      bool          // leaves out the closing mark, where the format has one

	// The bill.
	Usage       json.RawMessage // the usage block; nil: counted
	NoUsage     bool            // no usage block
	UsageCut    bool            // breaks the connection before the final usage
	Cached      int64           // of the prompt, read from the cache
	CacheWrite  int64           // of the prompt, written into the cache for minutes
	CacheHour   int64           // of the prompt, written into the cache for an hour; Anthropic only
	Reasoning   int64           // thought before the answer
	Dense       bool            // counts one token per byte, the most a tokenizer can
	IgnoreLimit bool            // writes past the limit of tokens
}

// Share is a part of a mix: of 1000 requests, PerMille meet Turn.
type Share struct {
	PerMille int
	Turn     Turn
}

// named are the mishaps that have a name, as command lines and pages speak of them.
var named = map[string]Turn{
	"429":       {Status: 429, Message: "Too many requests.", Header: map[string]string{"Retry-After": "2"}},
	"500":       {Status: 500, Message: "The server had an error."},
	"529":       {Status: 529, Message: "Overloaded."},
	"quota":     {Status: 429, Code: "insufficient_quota", Message: "You exceeded your current quota."},
	"refusal":   {Refusal: "I cannot help with that."},
	"truncated": {Truncate: 2},
	"cut":       {CutAfter: 3, Pace: 50 * time.Millisecond},
	"bad-json":  {Text: `{"this is no`},
	"empty":     {Blank: true},
	"no-usage":  {NoUsage: true},
	"slow":      {Delay: 3 * time.Second, Pace: 250 * time.Millisecond},
	"hang":      {Hang: true},
}

// Named is the mishap of a name, such as "429" or "bad-json".
func Named(name string) (Turn, bool) {
	turn, ok := named[name]
	return turn, ok
}

// Names lists the mishaps that have a name, in order of the alphabet.
func Names() []string { return slices.Sorted(maps.Keys(named)) }
