package fakellm

import (
	"encoding/json"
	"net/http"
	"strings"
)

// gemini is the native format of Google's Gemini models.
type gemini struct{}

// geminiPath stands before the model's name in an address.
const geminiPath = "/v1beta/models/"

func (gemini) name() string     { return "gemini" }
func (gemini) idHeader() string { return "X-Request-Id" }

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text       string `json:"text"`
		InlineData *struct {
			MIMEType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData"`
	} `json:"parts"`
}

// geminiAsk is a request's body.
type geminiAsk struct {
	SystemInstruction *geminiContent  `json:"systemInstruction"`
	Contents          []geminiContent `json:"contents"`
	GenerationConfig  struct {
		MaxOutputTokens    int64           `json:"maxOutputTokens"`
		ResponseMIMEType   string          `json:"responseMimeType"`
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
	} `json:"generationConfig"`
}

func (gemini) read(r *http.Request, body []byte) (Seen, string) {
	model, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, geminiPath), ":")
	var a geminiAsk
	if err := json.Unmarshal(body, &a); err != nil {
		return Seen{}, "Invalid JSON payload received. " + err.Error()
	}
	seen := a.seen()
	seen.Model, seen.Stream = model, method == "streamGenerateContent"
	switch {
	case len(a.Contents) == 0:
		return seen, "* GenerateContentRequest.contents: contents is not specified"
	case seen.MaxTokens < 1:
		return seen, "max_output_tokens must be positive"
	case seen.Stream && r.URL.Query().Get("alt") != "sse":
		return seen, "this server streams with alt=sse only"
	case r.URL.Query().Get("key") != "":
		return seen, "this server takes no key in the address"
	case seen.Schema == nil:
		return seen, ""
	case a.GenerationConfig.ResponseMIMEType != "application/json":
		return seen, "Function calling with a response mime type: 'text/plain' is unsupported"
	}
	return seen, checkSchema(seen.Schema, rules{noNulls: true})
}

func (a geminiAsk) seen() Seen {
	seen := Seen{MaxTokens: a.GenerationConfig.MaxOutputTokens, TokenField: "maxOutputTokens", IncludeUsage: true, Schema: a.GenerationConfig.ResponseJSONSchema}
	if a.SystemInstruction != nil {
		seen.System = a.SystemInstruction.text(&seen)
	}
	for _, c := range a.Contents {
		seen.User = strings.TrimPrefix(seen.User+"\n"+c.text(&seen), "\n")
	}
	return seen
}

// text joins the texts of a content, and notes its files.
func (c geminiContent) text(seen *Seen) string {
	var texts []string
	for _, p := range c.Parts {
		if p.InlineData != nil {
			seen.Files = append(seen.Files, p.InlineData.MIMEType)
			continue
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

var geminiStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
	499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (gemini) fail(w http.ResponseWriter, turn Turn) {
	status := turn.Type
	if status == "" {
		status = geminiStatuses[turn.Status]
	}
	block := map[string]any{"code": turn.Status, "message": turn.Message, "status": status}
	if turn.Details != nil {
		block["details"] = turn.Details
	}
	writeJSON(w, turn.Status, map[string]any{"error": block})
}

func (gemini) finishes(reply) (string, string) { return "STOP", "MAX_TOKENS" }

// usage leaves out what is zero, as the real server does.
func (gemini) usage(u figures) json.RawMessage {
	block := map[string]any{"promptTokenCount": u.prompt, "totalTokenCount": u.prompt + u.output + u.reasoning}
	for name, n := range map[string]int64{"candidatesTokenCount": u.output, "thoughtsTokenCount": u.reasoning, "cachedContentTokenCount": u.cached} {
		if n > 0 {
			block[name] = n
		}
	}
	return encode(block)
}

func (gemini) whole(r reply) any {
	return r.chunk(quote(r.text()), r.finish, r.usage)
}

// chunk is one piece of a stream, or the whole; they look the same.
func (r reply) chunk(quoted, finish string, usage json.RawMessage) map[string]any {
	chunk := map[string]any{"responseId": r.id, "modelVersion": r.model}
	if usage != nil && !r.turn.NoUsage {
		chunk["usageMetadata"] = usage
	}
	if r.turn.Refusal != "" {
		chunk["promptFeedback"] = map[string]any{"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": r.turn.Refusal}
		return chunk
	}
	if r.turn.NoChoices {
		return chunk
	}
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model"}}
	if quoted != "" && !r.turn.Null {
		candidate["content"] = map[string]any{"role": "model", "parts": []any{map[string]any{"text": json.RawMessage(quoted)}}}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	chunk["candidates"] = []any{candidate}
	return chunk
}

func (gemini) writer(out *events, r reply) writer { return &geminiWriter{events: out, r: r} }

type geminiWriter struct {
	*events
	r     reply
	wrote int64
}

func (e *geminiWriter) begin()         {}
func (e *geminiWriter) null()          {}
func (e *geminiWriter) decline(string) {}
func (e *geminiWriter) done()          {}
func (e *geminiWriter) broken()        { e.data(`{"candidates":[{"content":{"parts":[{"text":"half`) }

func (e *geminiWriter) fail(event string) { e.data(event) }

// piece sends the figures so far with each piece, as the real server does.
func (e *geminiWriter) piece(quoted string) {
	e.wrote++
	u := e.r.figures
	u.output = e.wrote
	e.data(string(encode(e.r.chunk(quoted, "", gemini{}.usage(u)))))
}

func (e *geminiWriter) end(finish string, usage json.RawMessage) {
	if e.r.turn.UsageCut {
		e.data(string(encode(e.r.chunk("", finish, nil))))
		panic(http.ErrAbortHandler)
	}
	if finish != "" || usage != nil {
		e.data(string(encode(e.r.chunk("", finish, usage))))
	}
}
