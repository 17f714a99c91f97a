package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"tollgate/app/llm/fields"
	"tollgate/app/outbound"
)

const (
	// maxAnswerText bounds the text of one answer in bytes.
	maxAnswerText = 16 << 20
	// maxStreamBytes bounds what one answer may take on the wire; a stream spends a
	// few hundred bytes on each token.
	maxStreamBytes = 512 << 20
	// maxErrorBody bounds what is read of an error's body.
	maxErrorBody = 64 << 10
)

var errTooLong = errors.New("answer longer than allowed")

// NewHTTP makes the guarded HTTP client that fits this package: limits as a long
// stream needs them, no redirects. allow names private model servers as host:port.
func NewHTTP(allow ...string) (*http.Client, error) {
	client, err := outbound.New(outbound.Config{Allow: allow, MaxBody: maxStreamBytes, Timeout: DefaultCallTimeout})
	if err != nil {
		return nil, err
	}
	return client.HTTP(), nil
}

// openAICall is one call in progress.
type openAICall struct {
	host string
	key  string
	req  Request
	now  func() time.Time

	wire   *outbound.Wire
	status int
	header http.Header
	body   []byte // of an error, or of an answer that came in one piece
}

// watch sits between the library and the wire. It notes how far the call got, and
// keeps bodies that are no stream: the library reads them without bound, and loses
// the status when an error's body is not in OpenAI's form.
func (c *openAICall) watch(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	ctx, wire := outbound.TraceSent(req.Context())
	c.wire = wire
	outbound.SendOnce(req.Header)
	res, err := next(req.WithContext(ctx))
	if err != nil {
		return res, err
	}
	c.status, c.header = res.StatusCode, res.Header
	limit := int64(maxErrorBody)
	if res.StatusCode < 400 {
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
			return res, nil
		}
		limit = maxAnswerText
	}
	body := res.Body
	defer func() { _ = body.Close() }()
	if c.body, err = io.ReadAll(io.LimitReader(body, limit)); err != nil && res.StatusCode < 400 {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(nil))
	return res, nil
}

// run makes the call and judges what came.
func (c *openAICall) run(ctx context.Context, chat openai.ChatCompletionService,
	params openai.ChatCompletionNewParams, opts ...option.RequestOption) (Answer, error) {
	stream := chat.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }()
	var script transcript
	var err error
	for err == nil && stream.Next() {
		err = script.add(stream.Current())
	}
	if err == nil {
		err = stream.Err()
	}
	if c.status >= 400 {
		return Answer{}, c.statusFault()
	}
	if err == nil && c.body != nil {
		err = script.whole(c.body)
	}
	answer := script.answer(c.req)
	if id := c.header.Get("X-Request-Id"); id != "" {
		answer.RequestID = fields.Cut(id, 200)
	}
	if err == nil && script.pieces == 0 && script.usage != nil {
		answer.Finish = firstText(answer.Finish, "stop") // billed and over: complete, and empty
	}
	if answer.Finish == "" {
		// Without a reason to stop the answer is not complete, however it ended.
		return Answer{}, c.cutFault(ctx, err, answer, script.pieces > 0)
	}
	return conclude(c.req, answer, script.refusal.text())
}

// transcript gathers the pieces of a stream.
type transcript struct {
	content, refusal pieces
	model, id        string
	finish           string
	usage            []byte // the last usage block as it came
	pieces           int64  // how many held text; most servers send one token in each
}

// add takes one piece. The first choice is the only one that was asked for.
func (t *transcript) add(chunk openai.ChatCompletionChunk) error {
	t.model, t.id = firstText(chunk.Model, t.model), firstText(chunk.ID, t.id)
	if chunk.JSON.Usage.Valid() {
		t.usage = []byte(chunk.JSON.Usage.Raw())
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.Delta.Content != "" || choice.Delta.Refusal != "" {
			t.pieces++
		}
		t.content.add(choice.Delta.JSON.Content.Raw())
		t.refusal.add(choice.Delta.JSON.Refusal.Raw())
		t.finish = firstText(choice.FinishReason, t.finish)
	}
	if t.content.size+t.refusal.size > maxAnswerText {
		return errTooLong
	}
	return nil
}

// whole takes an answer that came in one piece from a server that does not stream.
func (t *transcript) whole(body []byte) error {
	if errorBlock(body) != nil {
		return &ssestream.StreamError{Message: "error in an answer of status 200", Event: ssestream.Event{Data: body}}
	}
	var full openai.ChatCompletion
	if err := json.Unmarshal(body, &full); err != nil {
		return err
	}
	t.model, t.id = full.Model, full.ID
	if full.JSON.Usage.Valid() {
		t.usage = []byte(full.JSON.Usage.Raw())
	}
	if len(full.Choices) == 0 {
		t.finish = "stop" // complete, and empty
		return nil
	}
	first := full.Choices[0]
	t.content.add(first.Message.JSON.Content.Raw())
	t.refusal.add(first.Message.JSON.Refusal.Raw())
	t.finish = first.FinishReason
	return nil
}

// answer puts the pieces together.
func (t *transcript) answer(req Request) Answer {
	text, refusal := t.content.text(), t.refusal.text()
	usage, ok := readUsage(t.usage)
	if !ok {
		usage = counted(req, text+refusal, t.pieces)
	}
	return Answer{Text: text, Usage: usage, Model: fields.Cut(firstText(t.model, req.Model), 200),
		Finish: fields.Cut(t.finish, 200), RequestID: fields.Cut(t.id, 200), Raw: t.raw(text, refusal)}
}

// raw is the answer in the shape of one that came in one piece: a stream's own
// bytes are a hundred times its text.
func (t *transcript) raw(text, refusal string) []byte {
	message := map[string]any{"role": "assistant", "content": text}
	if refusal != "" {
		message["refusal"] = refusal
	}
	whole := map[string]any{"id": t.id, "object": "chat.completion", "model": t.model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": t.finish}}}
	if json.Valid(t.usage) {
		whole["usage"] = json.RawMessage(t.usage)
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		return nil // texts and checked JSON always encode
	}
	return raw
}

// pieces joins JSON strings before they are decoded. A character outside the basic
// plane is two escapes, and a stream may end a piece between them: decoded one by
// one, both halves would be lost.
type pieces struct {
	joined strings.Builder
	size   int
}

// add takes a JSON string as it stood on the wire; anything else is no text.
func (p *pieces) add(raw string) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return
	}
	p.joined.WriteString(raw[1 : len(raw)-1])
	p.size += len(raw) - 2
}

// text decodes what was joined. A half that found no partner becomes U+FFFD.
func (p *pieces) text() string {
	var text string
	if err := json.Unmarshal([]byte(`"`+p.joined.String()+`"`), &text); err != nil {
		return "" // each piece was part of JSON that was decoded already
	}
	return text
}
