package llm

import (
	"fmt"
	"strings"
	"unicode"

	"tollgate/app/llm/fields"
)

// ending is what a provider's finish reason means.
type ending int

const (
	endUnknown ending = iota // shown to people, never taken as done
	endDone
	endCut     // the limit of tokens was hit
	endRefused // a filter or the model itself declined
	endFull    // the model's window is full
)

// conclude judges what a provider sent: it returns the complete answer with its
// Data, or the *Error that fits. The order matters: a refusal may be blank, and an
// answer that hit the limit may look like an object.
func conclude(req Request, endings map[string]ending, answer Answer, refusal string) (Answer, error) {
	text, mended := fields.Clean(answer.Text)
	answer.Text = text
	if mended {
		answer.Repairs = append(answer.Repairs, "characters that cannot be stored were replaced by �")
	}
	end := endings[strings.ToLower(answer.Finish)]
	switch {
	case end == endRefused || refusal != "":
		return failed(answer, ClassRefused, "The model declined to answer.", firstText(refusal, answer.Text))
	case end == endCut:
		return failed(answer, ClassTruncated, fmt.Sprintf(
			"The answer was cut off at the limit of %d tokens (max_tokens). Raise the limit or ask for less.", req.MaxTokens), answer.Text)
	case end == endFull:
		return failed(answer, ClassContextTooLong,
			"The answer was cut off because prompt and answer together fill what the model can read. Insert less data, or choose a model that reads more.", answer.Text)
	case end == endUnknown:
		return failed(answer, ClassMalformed, fmt.Sprintf(
			"The model stopped for a reason that is not known here (%q), so its answer is not taken as complete.", fields.Cut(answer.Finish, 60)), answer.Text)
	case blank(answer.Text):
		return failed(answer, ClassEmpty, "The model gave an empty answer.", "")
	case req.Answer == nil:
		return answer, nil
	}
	data, repairs, err := fields.Read(answer.Text, req.Answer)
	if err != nil {
		return failed(answer, ClassMalformed, "The answer cannot be used: "+err.Error()+".", answer.Text)
	}
	answer.Data = data
	answer.Repairs = append(answer.Repairs, repairs...)
	return answer, nil
}

// failed makes an error of an answer that was paid for and cannot be used.
func failed(answer Answer, class Class, message, text string) (Answer, error) {
	usage := answer.Usage
	return Answer{}, &Error{Class: class, Message: message, Detail: detail(text),
		Dispatched: true, Usage: &usage, Answer: answer}
}

func firstText(texts ...string) string {
	for _, text := range texts {
		if !blank(text) {
			return text
		}
	}
	return ""
}

// blank tells whether a text has nothing to read: only spaces, marks without width
// and the like.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r)
	}) == ""
}
