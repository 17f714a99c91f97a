package llm

import (
	"encoding/json"
	"strings"

	"tollgate/app/llm/fields"
)

// transcript gathers the pieces of an answer.
type transcript struct {
	content, refusal pieces
	live             live
	model, id        string
	finish           string
	usage            []byte // the usage figures as they came, the last of each
	complete         bool   // usage is that of the whole answer
	pieces           int64  // how many held text; most servers send one token in each
}

// say takes a piece of text as the JSON string that stood on the wire.
func (t *transcript) say(raw string) {
	if t.content.add(raw) {
		t.pieces++
		t.live.add(raw)
	}
}

// decline takes a piece of a refusal.
func (t *transcript) decline(raw string) {
	if t.refusal.add(raw) {
		t.pieces++
	}
}

func (t *transcript) size() int { return t.content.size + t.refusal.size }

// answer puts the pieces together.
func (t *transcript) answer(x *exchange) Answer {
	text, refusal := t.content.text(), t.refusal.text()
	answer := Answer{Text: text, Usage: t.used(x, text+refusal), Model: fields.Cut(firstText(t.model, x.req.Model), 200),
		Finish: fields.Cut(t.finish, 200), RequestID: firstText(x.requestID(), fields.Cut(t.id, 200)),
		Sent: x.sent, Limits: readLimits(x.header, x.now())}
	raw, err := json.Marshal(x.dialect.raw(t, text, refusal))
	if err == nil { // texts and checked JSON always encode
		answer.Raw = raw
	}
	return answer
}

// used are the provider's figures. Where they were told before the answer was whole,
// they count for what was read, and what was written is counted from the text.
func (t *transcript) used(x *exchange, text string) Usage {
	usage, ok := x.dialect.usage(t.usage)
	if !ok {
		return counted(x.req, text, t.pieces)
	}
	if !t.complete {
		usage.Output = max(usage.Output, counted(x.req, text, t.pieces).Output)
		usage.Estimated = true
	}
	return usage
}

// figures is the usage block for the technical view.
func (t *transcript) figures() json.RawMessage {
	if !json.Valid(t.usage) {
		return json.RawMessage("null")
	}
	return t.usage
}

// pieces joins JSON strings before they are decoded. A character outside the basic
// plane is two escapes, and a stream may end a piece between them: decoded one by
// one, both halves would be lost.
type pieces struct {
	joined strings.Builder
	size   int
}

// add takes a JSON string as it stood on the wire; anything else is no text. It tells
// whether there was any.
func (p *pieces) add(raw string) bool {
	inner, ok := inside(raw)
	if !ok {
		return false
	}
	p.joined.WriteString(inner)
	p.size += len(inner)
	return inner != ""
}

// inside is what stands between the quotes of a JSON string.
func inside(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	return raw[1 : len(raw)-1], true
}

// text decodes what was joined. A half that found no partner becomes U+FFFD.
func (p *pieces) text() string { return decode(p.joined.String()) }

func decode(inner string) string {
	var text string
	if err := json.Unmarshal([]byte(`"`+inner+`"`), &text); err != nil {
		return "" // each piece was part of JSON that was decoded already
	}
	return text
}

// live tells somebody of the text while it comes.
type live struct {
	tell func(string)
	rest string // half a character that waits for its other half
}

func (l *live) add(raw string) {
	if l.tell == nil {
		return
	}
	inner, _ := inside(raw)
	inner = l.rest + inner
	l.rest = ""
	if at := len(inner) - len(`\ud83d`); at >= 0 && halfCharacter(inner, at) {
		inner, l.rest = inner[:at], inner[at:]
	}
	if text, _ := fields.Clean(decode(inner)); text != "" {
		l.tell(text)
	}
}

// end tells of a half that found no partner.
func (l *live) end() {
	if l.rest != "" {
		l.tell(decode(l.rest))
	}
}

// halfCharacter tells whether the text ends, from at on, in the escape of a character's
// first half. A backslash behind an odd number of others is no escape's.
func halfCharacter(text string, at int) bool {
	escape := text[at:]
	before := len(text[:at]) - len(strings.TrimRight(text[:at], `\`))
	return before%2 == 0 && escape[:2] == `\u` && (escape[2] == 'd' || escape[2] == 'D') && strings.ContainsRune("89abAB", rune(escape[3]))
}
