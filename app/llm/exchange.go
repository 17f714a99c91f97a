package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

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

// userAgent is how calls introduce themselves.
const userAgent = "Tollgate (AI workflows)"

// dialect is what differs between providers in what comes back.
type dialect struct {
	whole     func(t *transcript, body []byte) error // takes an answer that came in one piece
	usage     func(raw []byte) (Usage, bool)         // false when the figures are missing or unusable
	raw       func(t *transcript, text, refusal string) any
	readError func(body []byte) providerError // of an error's body or event
	classify  func(status int, e providerError) (Class, bool)
	endings   map[string]ending // by finish reason in lower case
	idHeader  string            // holds the provider's name for the call
}

// exchange is one call in progress. It stands in for the HTTP client that a provider's
// library would use, and sees what the library hides.
type exchange struct {
	dialect *dialect
	base    address
	client  *http.Client
	secret  string
	req     Request
	now     func() time.Time

	wire   *outbound.Wire
	sent   []byte
	status int
	header http.Header
	body   []byte // of an error, or of an answer that came in one piece
}

// Do sends the library's request. It notes how far the call got, and keeps bodies that
// are no stream: libraries read them without bound, and lose the status when an error's
// body is not in the provider's form.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	var err error
	if x.sent, err = bodyOf(req); err != nil {
		return nil, err
	}
	ctx, wire := outbound.TraceSent(req.Context())
	x.wire = wire
	req.Header.Set("User-Agent", userAgent)
	outbound.SendOnce(req.Header)
	res, err := x.client.Do(req.WithContext(ctx))
	if err != nil {
		return res, err
	}
	x.status, x.header = res.StatusCode, res.Header
	limit := int64(maxErrorBody)
	if res.StatusCode < 400 {
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
			return res, nil
		}
		limit = maxAnswerText
	}
	body := res.Body
	defer func() { _ = body.Close() }()
	if x.body, err = io.ReadAll(io.LimitReader(body, limit)); err != nil && res.StatusCode < 400 {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(nil))
	return res, nil
}

// bodyOf reads a request's body and puts it back.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return body, nil
}

// stream is a library's stream of events.
type stream[T any] interface {
	Next() bool
	Current() T
	Err() error
	Close() error
}

// sseStream is a stream of bare data events, as OpenAI's library reads it; errors among
// them come through as the provider sent them.
type sseStream[T any] struct{ *ssestream.Stream[T] }

// Err implements stream.
func (s sseStream[T]) Err() error {
	err := s.Stream.Err()
	if event := new(ssestream.StreamError); errors.As(err, &event) {
		return &eventError{data: event.Event.Data}
	}
	return err
}

// run reads a call's stream and judges what came.
func run[T any](ctx context.Context, x *exchange, s stream[T], add func(*transcript, T) error) (Answer, error) {
	defer func() { _ = s.Close() }()
	script := &transcript{live: live{tell: x.req.Live}}
	var err error
	for err == nil && s.Next() {
		if err = add(script, s.Current()); err == nil && script.size() > maxAnswerText {
			err = errTooLong
		}
	}
	if err == nil {
		err = s.Err()
	}
	if x.status >= 400 {
		return Answer{}, x.statusFault()
	}
	if err == nil && x.body != nil {
		err = x.whole(script)
	}
	script.live.end()
	return x.judge(ctx, script, err)
}

func (x *exchange) whole(script *transcript) error {
	if errorBlock(x.body) != nil {
		return &eventError{data: x.body}
	}
	return x.dialect.whole(script, x.body)
}

// judge makes an answer or an error of what came, and of the error that ended it.
func (x *exchange) judge(ctx context.Context, script *transcript, err error) (Answer, error) {
	answer := script.answer(x)
	if err == nil && script.pieces == 0 && script.usage != nil && script.complete {
		answer.Finish = firstText(answer.Finish, "stop") // billed and over: complete, and empty
	}
	if answer.Finish == "" {
		// Without a reason to stop the answer is not complete, however it ended.
		return Answer{}, x.cutFault(ctx, err, answer, script.pieces > 0)
	}
	answer, err = conclude(x.req, x.dialect.endings, answer, script.refusal.text())
	if fault := new(Error); errors.As(err, &fault) {
		fault.Limits, fault.Status = fault.Answer.Limits, x.status
		return Answer{}, fault
	}
	return answer, err
}

// requestID is the provider's name for the call.
func (x *exchange) requestID() string {
	return fields.Cut(x.header.Get(x.dialect.idHeader), 200)
}
