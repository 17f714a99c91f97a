package pipeline

import (
	"fmt"
	"slices"

	"tollgate/app/expr"
)

// UnsureAction is what happens when nobody can tell whether a call arrived.
type UnsureAction string

// What can be done about a call that may have arrived. "" means UnsureAsk for a call that
// sends data, and UnsureRepeat for one that only gets some.
const (
	UnsureAsk    UnsureAction = "ask"
	UnsureRepeat UnsureAction = "repeat"
	UnsureLookUp UnsureAction = "look_up"
	UnsureFail   UnsureAction = "fail"
)

// SendAs is the form in which a call's data is sent.
type SendAs string

// The forms of data that is sent. "" means SendJSON.
const (
	SendJSON SendAs = "json"
	SendForm SendAs = "form" // a record, as a browser's form sends it
	SendText SendAs = "text"
	SendFile SendAs = "file" // the bytes of a file value
)

// AnswerAs is how a call's answer is read.
type AnswerAs string

// The ways to read an answer. "" means AnswerJSON.
const (
	AnswerJSON AnswerAs = "json"
	AnswerText AnswerAs = "text"
	AnswerFile AnswerAs = "file"
)

// HTTP gets data from another system or sends data there. Its output holds "status",
// "headers", by names in small letters, and "body".
type HTTP struct {
	Method            string       `json:"method"`
	URL               string       `json:"url"`             // text; what is inserted behind its beginning is encoded
	Query             []Param      `json:"query,omitempty"` // added to the address
	Headers           []Header     `json:"headers,omitempty"`
	Body              string       `json:"body,omitempty"` // formula; what it gives is sent
	Send              SendAs       `json:"send,omitempty"`
	Auth              *Auth        `json:"auth,omitempty"`
	Success           []string     `json:"success,omitempty"` // statuses such as "201" or "2xx"; empty: 2xx
	Answer            AnswerAs     `json:"answer,omitempty"`
	IdempotencyHeader string       `json:"idempotency_header,omitempty"` // empty: Idempotency-Key
	MaxBytes          int64        `json:"max_bytes,omitempty"`          // of the answer; 0: MaxHTTPAnswer
	IfUnsure          UnsureAction `json:"if_unsure,omitempty"`
	LookUp            *LookUp      `json:"look_up,omitempty"`   // with UnsureLookUp
	Reuse             bool         `json:"reuse,omitempty"`     // take an identical earlier answer; of calls that send nothing
	ReuseFor          *Duration    `json:"reuse_for,omitempty"` // how old that may be; nil: DefaultReuse
	Ask               []Person     `json:"ask,omitempty"`       // with UnsureAsk; nobody named: the owners and admins
}

// Param is one entry of an address's query.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"` // text
}

// Header is one header of a call; exactly one of Value and Secret is set.
type Header struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`  // text
	Secret string `json:"secret,omitempty"` // name of a stored secret
}

// AuthKind is how a call shows who makes it.
type AuthKind string

// The ways to show who calls.
const (
	AuthBearer AuthKind = "bearer"  // the secret is a token
	AuthBasic  AuthKind = "basic"   // the secret is the password of User
	AuthAPIKey AuthKind = "api_key" // the secret is sent in a header, or in the query
	AuthOAuth2 AuthKind = "oauth2"  // the secret is that of the client User, with which a token is fetched
)

// Auth is how a call shows who makes it. The secret itself is never part of a document.
type Auth struct {
	Kind     AuthKind `json:"kind"`
	Secret   string   `json:"secret"`              // name of a stored secret
	User     string   `json:"user,omitempty"`      // user name or client id
	Header   string   `json:"header,omitempty"`    // of an API key; empty: X-API-Key
	Query    string   `json:"query,omitempty"`     // entry of the query that takes an API key, in place of a header
	TokenURL string   `json:"token_url,omitempty"` // where OAuth 2 gives tokens
	Scope    string   `json:"scope,omitempty"`     // of OAuth 2
}

// LookUp is how one finds out whether a call arrived: a request that gets data, under the
// same headers and auth, and formulas that read "answer", which has what an output has.
type LookUp struct {
	URL     string `json:"url"`             // text
	Arrived string `json:"arrived"`         // formula: yes or no
	Value   string `json:"value,omitempty"` // formula: the body to go on with; empty: the answer's
}

// Sends tells whether the call may change something on the other side.
func (c *HTTP) Sends() bool { return c.Method != "GET" && c.Method != "HEAD" }

// Unsure is what happens when nobody can tell whether the call arrived.
func (c *HTTP) Unsure() UnsureAction {
	switch {
	case c.IfUnsure != "":
		return c.IfUnsure
	case c.Sends():
		return UnsureAsk
	}
	return UnsureRepeat
}

// Secrets are the names of the secrets that the call uses, each once.
func (c *HTTP) Secrets() []string {
	var names []string
	for _, h := range c.Headers {
		names = append(names, h.Secret)
	}
	if c.Auth != nil {
		names = append(names, c.Auth.Secret)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// Secrets are the names of the secrets that the document's steps use, each once, with the
// steps that use it in reading order.
func (d Document) Secrets() map[string][]string {
	out := map[string][]string{}
	for _, n := range grow(&d).all {
		call, ok := n.Step.With.(*HTTP)
		if !ok {
			continue
		}
		for _, name := range call.Secrets() {
			out[name] = append(out[name], n.title())
		}
	}
	return out
}

// Kind is KindHTTP.
func (*HTTP) Kind() Kind { return KindHTTP }

func (*HTTP) lists() []nested { return nil }

func (c *HTTP) slots() []slot {
	out := []slot{{"with.url", "Address", c.URL, true}, {"with.body", "Data to send", c.Body, false}}
	for i, q := range c.Query {
		out = append(out, slot{fmt.Sprintf("with.query[%d].value", i), "Query “" + q.Name + "”", q.Value, true})
	}
	for i, h := range c.Headers {
		if h.Value != "" {
			out = append(out, slot{fmt.Sprintf("with.headers[%d].value", i), "Header “" + h.Name + "”", h.Value, true})
		}
	}
	if c.LookUp != nil {
		out = append(out, slot{"with.look_up.url", "Address to look up", c.LookUp.URL, true})
	}
	for i, p := range c.Ask {
		out = append(out, slot{fmt.Sprintf("with.ask[%d].email", i), "Who is asked", p.Email, true})
	}
	return out
}

// judged are the formulas that read the answer of a look-up.
func (c *HTTP) judged() []slot {
	if c.LookUp == nil {
		return nil
	}
	return []slot{
		{"with.look_up.arrived", "Whether it arrived", c.LookUp.Arrived, false},
		{"with.look_up.value", "What to go on with", c.LookUp.Value, false},
	}
}

// CompiledHTTP is an HTTP configuration with its defaults filled in.
type CompiledHTTP struct {
	Method            string
	Sends             bool // it may change something on the other side
	URL               *expr.Text
	Query             []CompiledParam
	Headers           []CompiledParam
	SecretHeaders     []Header      // those whose value is a secret
	Body              *expr.Formula // nil: nothing is sent
	Send              SendAs
	Auth              *Auth
	Success           []string
	Answer            AnswerAs
	IdempotencyHeader string // of a call that sends; empty for one that only gets
	MaxBytes          int64
	Unsure            UnsureAction
	LookUp            *CompiledLookUp // nil where there is none
	Ask               []CompiledPerson
}

// CompiledParam is a named text.
type CompiledParam struct {
	Name  string
	Value *expr.Text
}

// CompiledLookUp is a LookUp. Its formulas are read where the answer is, and stay text.
type CompiledLookUp struct {
	URL            *expr.Text
	Arrived, Value string
}

// DefaultIdempotencyHeader carries the key of a call that sends, where its step names no
// other header.
const DefaultIdempotencyHeader = "Idempotency-Key"

func (c *compiler) http(w *HTTP) *CompiledHTTP {
	out := &CompiledHTTP{
		Method: w.Method, Sends: w.Sends(), URL: c.text(w.URL), Body: c.maybe(w.Body), Send: either(w.Send, SendJSON), Auth: w.Auth,
		Success: w.Success, Answer: either(w.Answer, AnswerJSON), MaxBytes: w.MaxBytes, Unsure: w.Unsure(), Ask: c.asked(w.Ask),
	}
	if out.Sends {
		out.IdempotencyHeader = either(w.IdempotencyHeader, DefaultIdempotencyHeader)
	}
	if out.MaxBytes == 0 {
		out.MaxBytes = MaxHTTPAnswer
	}
	if len(out.Success) == 0 {
		out.Success = []string{"2xx"}
	}
	if len(out.Ask) == 0 {
		out.Ask = []CompiledPerson{{Role: "owner"}, {Role: "admin"}}
	}
	for _, q := range w.Query {
		out.Query = append(out.Query, CompiledParam{q.Name, c.text(q.Value)})
	}
	for _, h := range w.Headers {
		if h.Secret != "" {
			out.SecretHeaders = append(out.SecretHeaders, h)
			continue
		}
		out.Headers = append(out.Headers, CompiledParam{h.Name, c.text(h.Value)})
	}
	if w.LookUp != nil {
		out.LookUp = &CompiledLookUp{c.text(w.LookUp.URL), w.LookUp.Arrived, w.LookUp.Value}
	}
	return out
}
