package llm

import (
	"encoding/json"
	"time"
)

// Usage is what a call used, in tokens. The classes are disjoint: a token is
// counted once, in the class it is priced by.
type Usage struct {
	Input          int64 // read by the model, neither from nor into a cache
	CacheRead      int64 // read from the provider's cache
	CacheWrite     int64 // read and written into the provider's cache for minutes
	CacheWriteLong int64 // read and written into the provider's cache for an hour, which is dearer
	Output         int64 // written for us to see
	Reasoning      int64 // written as thinking; priced like Output
	// Estimated is true when the provider gave no figures, or figures that do not
	// add up, and these were counted here from the text instead.
	Estimated bool
}

// Total is the sum over all classes.
func (u Usage) Total() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.CacheWriteLong + u.Output + u.Reasoning
}

// Answer is a complete answer.
type Answer struct {
	Text      string          // as the model wrote it, cleaned of NUL and broken UTF-8
	Data      json.RawMessage // the fields asked for, in the order asked; nil for plain text
	Usage     Usage
	Model     string   // the model as billed, in the provider's words, without the registry's prefix
	Finish    string   // why the model stopped, in the provider's words
	RequestID string   // the provider's name for this call, for support questions
	Raw       []byte   // the provider's answer as JSON, for the technical view
	Sent      []byte   // the request's body as it was sent; keys travel beside it and are not in it
	Limits    Limits   // what the provider says of its limits
	Note      string   // a remark every reader of the answer must see; mostly empty
	Repairs   []string // what was mended by rule while reading, in plain words
	Practice  bool     // written by the practice model: nothing was read by an AI
}

// Limits are what a provider says is left of its limits per minute for the key and the
// model of the call. What it does not say is nil.
type Limits struct {
	Requests, RequestsLeft *int64
	Tokens, TokensLeft     *int64
	// Reset is when the later of them is full again, counted from now; 0 when nothing
	// was said.
	Reset time.Duration
}
