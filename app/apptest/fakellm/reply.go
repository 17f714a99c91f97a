package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// reply is an answer ready to be sent.
type reply struct {
	turn    Turn
	id      string
	model   string
	pieces  []string // JSON strings
	finish  string
	figures figures
	usage   json.RawMessage
}

// figures are the tokens of a call; cached, written and hour are parts of prompt.
type figures struct{ prompt, cached, written, hour, output, reasoning int64 }

func (f figures) total() int64 { return f.prompt + f.output + f.reasoning }

// compose makes the answer of a turn, within the limit of tokens; one piece is one
// token.
func (s *Server) compose(f format, ask Seen, turn Turn) reply {
	r := reply{turn: turn, id: fmt.Sprintf("%016x", s.hash(ask.Model, ask.User)), model: turn.Model}
	if f.name() == "openai" {
		r.id = "chatcmpl-" + r.id
	}
	if r.model == "" {
		r.model = ask.Model
	}
	r.pieces = turn.Pieces
	if r.pieces == nil && !turn.Blank && !turn.Null && !turn.NoChoices && turn.Refusal == "" {
		text := turn.Text
		if text == "" {
			text = s.text(ask)
		}
		r.pieces = split(text)
	}
	done, cut := f.finishes(r)
	r.finish = done
	limit := max(ask.MaxTokens-turn.Reasoning, 0)
	if turn.Truncate > 0 {
		limit = min(limit, int64(turn.Truncate))
	}
	if int64(len(r.pieces)) > limit && !turn.IgnoreLimit {
		r.pieces, r.finish = r.pieces[:limit], cut
	}
	if turn.Finish != "" {
		r.finish = turn.Finish
	}
	if turn.NoFinish {
		r.finish = ""
	}
	r.figures = count(ask, int64(len(r.pieces)), turn)
	r.usage = turn.Usage
	if r.usage == nil {
		r.usage = f.usage(r.figures)
	}
	return r
}

// text joins the pieces.
func (r reply) text() string {
	var text string
	for _, piece := range r.pieces {
		var part string
		if json.Unmarshal([]byte(piece), &part) == nil {
			text += part
		}
	}
	return text
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

func quote(text string) string { return string(encode(text)) }

// encode makes JSON of plain values, which always encode.
func encode(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// orNull is a text, or null for an empty one.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// count counts four bytes as a token, or one if dense. What the turn says of the cache
// is part of the prompt, which grows where it is too short.
func count(ask Seen, written int64, turn Turn) figures {
	tokens := int64(ask.size()/4 + 1)
	if turn.Dense {
		tokens = int64(ask.size())
	}
	messages := int64(1)
	if ask.System != "" {
		messages++
	}
	tokens = max(tokens+4*messages+3, turn.Cached+turn.CacheWrite+turn.CacheHour)
	return figures{prompt: tokens, cached: turn.Cached, written: turn.CacheWrite, hour: turn.CacheHour, output: written, reasoning: turn.Reasoning}
}

// stream sends the answer as events, with the turn's mishaps.
func (s *Server) stream(w http.ResponseWriter, req *http.Request, f format, r reply) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := f.writer(&events{w: w, flush: http.NewResponseController(w)}, r)
	if !s.content(req, out, r) {
		return
	}
	usage := r.usage
	if r.turn.NoUsage {
		usage = nil
	}
	out.end(r.finish, usage)
	if !r.turn.NoDone {
		out.done()
	}
}

// content sends the pieces; false when the stream is over.
func (s *Server) content(req *http.Request, out writer, r reply) bool {
	out.begin()
	if r.turn.Null {
		out.null()
	}
	if r.turn.Refusal != "" {
		out.decline(r.turn.Refusal)
	}
	for i, piece := range r.pieces {
		if i > 0 && r.turn.Pace > 0 && !s.wait(req, time.After(r.turn.Pace)) {
			return false
		}
		out.piece(piece)
		switch i + 1 {
		case r.turn.CutAfter:
			panic(http.ErrAbortHandler)
		case r.turn.EndAfter:
			return false
		case r.turn.StallAfter:
			s.wait(req, nil)
			return false
		case r.turn.BrokenAfter:
			out.broken()
		case r.turn.ErrorAfter:
			out.fail(r.turn.ErrorEvent)
			return false
		}
	}
	return true
}

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	flush *http.ResponseController
}

func (e *events) data(data string) {
	_, _ = fmt.Fprintf(e.w, "data: %s\n\n", data)
	_ = e.flush.Flush()
}

func (e *events) event(name, data string) {
	_, _ = fmt.Fprintf(e.w, "event: %s\n", name)
	e.data(data)
}
