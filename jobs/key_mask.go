package jobs

import (
	"strings"

	"tollgate/app/llm"
	"tollgate/app/outbound"
)

// maskAnswer hides a key in all that an answer says.
func maskAnswer(masks *outbound.Masks, answer *llm.Answer) {
	answer.Text, answer.Note = masks.Text(answer.Text), masks.Text(answer.Note)
	answer.Data, answer.Raw, answer.Sent = masks.Bytes(answer.Data), masks.Bytes(answer.Raw), masks.Bytes(answer.Sent)
	answer.Model, answer.Finish, answer.RequestID = masks.Text(answer.Model), masks.Text(answer.Finish), masks.Text(answer.RequestID)
	for i, repair := range answer.Repairs {
		answer.Repairs[i] = masks.Text(repair)
	}
}

// liveMask hides a key in a text that comes in pieces, however it is cut: what may be the
// beginning of the key is held back until more has come.
type liveMask struct {
	masks  *outbound.Masks
	secret string
	held   string
	to     func(text string)
}

func newLiveMask(secret string, to func(text string)) *liveMask {
	return &liveMask{masks: masksOf(secret), secret: secret, to: to}
}

// masksOf hides one key.
func masksOf(secret string) *outbound.Masks {
	masks := &outbound.Masks{}
	masks.Hide("provider key", secret)
	return masks
}

func (l *liveMask) write(piece string) {
	text := l.masks.Text(l.held + piece)
	keep := 0
	for n := min(len(text), len(l.secret)-1); n > 0; n-- {
		if strings.HasPrefix(l.secret, text[len(text)-n:]) {
			keep = n
			break
		}
	}
	l.held = text[len(text)-keep:]
	if text = text[:len(text)-keep]; text != "" {
		l.to(text)
	}
}
