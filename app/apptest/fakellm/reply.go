package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// reply is an answer ready to be sent.
type reply struct {
	turn   Turn
	id     string
	model  string
	pieces []string // JSON strings
	finish string
	usage  json.RawMessage
}

// compose makes the answer of a turn, within the limit of tokens; one piece is one
// token.
func (s *Server) compose(a ask, turn Turn) reply {
	r := reply{turn: turn, id: fmt.Sprintf("chatcmpl-%016x", s.hash(a.Model, a.content("user"))), model: turn.Model}
	if r.model == "" {
		r.model = a.Model
	}
	r.pieces = turn.Pieces
	if r.pieces == nil && !turn.Blank && !turn.Null && !turn.NoChoices && turn.Refusal == "" {
		text := turn.Text
		if text == "" {
			text = s.text(a)
		}
		r.pieces = split(text)
	}
	r.finish = "stop"
	if limit := a.limit(); int64(len(r.pieces)) > limit && !turn.IgnoreLimit {
		r.pieces, r.finish = r.pieces[:limit], "length"
	}
	if turn.Finish != "" {
		r.finish = turn.Finish
	}
	r.usage = turn.Usage
	if r.usage == nil {
		r.usage = countUsage(a, len(r.pieces), turn.Dense)
	}
	return r
}

// split cuts a text into pieces of four characters, as JSON strings.
func split(text string) []string {
	runes := []rune(text)
	var pieces []string
	for len(runes) > 0 {
		n := min(4, len(runes))
		pieces = append(pieces, quote(string(runes[:n])))
		runes = runes[n:]
	}
	return pieces
}

func quote(text string) string {
	raw, _ := json.Marshal(text) // a string always encodes
	return string(raw)
}

// countUsage counts four bytes as a token, or one if dense.
func countUsage(a ask, written int, dense bool) json.RawMessage {
	size := len(a.schema())
	for _, m := range a.Messages {
		size += len(m.Content)
	}
	tokens := size/4 + 1
	if dense {
		tokens = size
	}
	tokens += 4*len(a.Messages) + 3
	return json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		tokens, written, tokens+written))
}

// whole is the answer in one piece.
func (r reply) whole() any {
	choice := map[string]any{"index": 0, "message": r.message(), "finish_reason": r.finishValue()}
	choices := []any{choice}
	if r.turn.NoChoices {
		choices = []any{}
	}
	whole := map[string]any{"id": r.id, "object": "chat.completion", "created": 1, "model": r.model, "choices": choices}
	if !r.turn.NoUsage {
		whole["usage"] = r.usage
	}
	return whole
}

func (r reply) message() map[string]any {
	var text string
	for _, piece := range r.pieces {
		var part string
		if json.Unmarshal([]byte(piece), &part) == nil {
			text += part
		}
	}
	message := map[string]any{"role": "assistant", "content": text}
	if r.turn.Null || r.turn.Refusal != "" {
		message["content"] = nil
	}
	if r.turn.Refusal != "" {
		message["refusal"] = r.turn.Refusal
	}
	return message
}

func (r reply) finishValue() any {
	if r.turn.NoFinish {
		return nil
	}
	return r.finish
}

// stream sends the answer as events, with the turn's mishaps.
func (s *Server) stream(w http.ResponseWriter, req *http.Request, r reply) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := events{w: w, flush: http.NewResponseController(w), reply: r}
	if r.turn.NoChoices {
		out.chunk("[]", "null")
	} else if !s.content(req, &out, r) {
		return
	}
	if r.turn.UsageCut {
		panic(http.ErrAbortHandler)
	}
	if !r.turn.NoUsage {
		out.chunk("[]", string(r.usage))
	}
	if !r.turn.NoDone {
		out.data("[DONE]")
	}
}

// content sends the pieces and the finish reason; false when the stream is over.
func (s *Server) content(req *http.Request, out *events, r reply) bool {
	out.delta(`{"role":"assistant","content":""}`, "null")
	if r.turn.Null {
		out.delta(`{"content":null}`, "null")
	}
	if r.turn.Refusal != "" {
		out.delta(`{"refusal":`+quote(r.turn.Refusal)+`}`, "null")
	}
	for i, piece := range r.pieces {
		out.delta(`{"content":`+piece+`}`, "null")
		switch i + 1 {
		case r.turn.CutAfter:
			panic(http.ErrAbortHandler)
		case r.turn.EndAfter:
			return false
		case r.turn.StallAfter:
			s.wait(req, nil)
			return false
		case r.turn.BrokenAfter:
			out.data(`{"id":"x","choices":[{"delta":{"content":"half`)
		case r.turn.ErrorAfter:
			out.data(r.turn.ErrorEvent)
			return false
		}
	}
	if !r.turn.NoFinish {
		out.delta("{}", quote(r.finish))
	}
	return true
}

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	reply reply
}

func (e *events) delta(delta, finish string) {
	e.chunk(`[{"index":0,"delta":`+delta+`,"finish_reason":`+finish+`}]`, "null")
}

func (e *events) chunk(choices, usage string) {
	e.data(fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":1,"model":%q,"choices":%s,"usage":%s}`,
		e.reply.id, e.reply.model, choices, usage))
}

func (e *events) data(data string) {
	_, _ = fmt.Fprintf(e.w, "data: %s\n\n", data)
	_ = e.flush.Flush()
}
