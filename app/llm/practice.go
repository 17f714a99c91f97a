package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"tollgate/app/llm/fields"
)

// PracticePrefix is the registry's prefix of the practice model, and PracticeModel
// the id of its one model there.
const (
	PracticePrefix = "practice"
	PracticeModel  = PracticePrefix + "/standard"
)

// PracticeNote stands on every answer that the practice model made up.
const PracticeNote = "practice answer, not read from your document"

// practiceSentence is what the practice model writes wherever a text is asked for.
const practiceSentence = "This is a practice answer. It was not read from your document."

// The time an answer of the practice model takes unless set otherwise: long enough
// that a run is seen running, short enough not to bore.
const (
	DefaultPracticeMin = 300 * time.Millisecond
	DefaultPracticeMax = 800 * time.Millisecond
	// maxPracticeDelay bounds what a set-up may ask for.
	maxPracticeDelay = 30 * time.Second
)

// Practice is a provider that needs no key and asks nobody. It gives the recorded
// sample when the request has one that fits, else a value that fits the fields and
// says that it is made up. The same request gets the same answer.
type Practice struct {
	shortest, longest time.Duration
}

// NewPractice makes a practice provider whose answers take between shortest and
// longest; both 0 answers at once. Bounds the wrong way round, negative or above 30
// seconds are brought into order.
func NewPractice(shortest, longest time.Duration) *Practice {
	longest = min(max(longest, 0), maxPracticeDelay)
	return &Practice{shortest: min(max(shortest, 0), longest), longest: longest}
}

// PracticeEntry is the registry entry of a practice provider.
func PracticeEntry(p *Practice) Entry {
	return Entry{Prefix: PracticePrefix, Provider: p, Models: []Model{
		{ID: PracticeModel, Name: "Practice model (no key, reads nothing)", Practice: true, TakesFiles: true},
	}}
}

// Call implements Provider.
func (p *Practice) Call(ctx context.Context, req Request) (Answer, error) {
	if PracticePrefix+"/"+req.Model != PracticeModel {
		return Answer{}, invalid("There is only one practice model, " + PracticeModel + ".")
	}
	seed := practiceSeed(req)
	if err := sleep(ctx, p.delay(seed)); err != nil {
		return Answer{}, stopped(ctx, err, false)
	}
	text, note := practiceText(req, seed)
	answer := Answer{Text: text, Model: req.Model, Finish: "stop", Note: note, Practice: true,
		RequestID: fmt.Sprintf("practice-%08x", seed&0xffffffff), Usage: practiceUsage(req, text)}
	if answer.Usage.Output > req.MaxTokens {
		// As a real model would: it stops at the limit, in the middle.
		answer.Usage.Output, answer.Finish = req.MaxTokens, "length"
		answer.Text = fields.Cut(text, int(req.MaxTokens)*practiceBytesPerToken)
	}
	answer.Raw = practiceRaw(answer)
	return conclude(req, openAIEndings, answer, "")
}

// delay spreads the time by the request, so that a demonstration looks alive and a
// test is repeatable.
func (p *Practice) delay(seed uint64) time.Duration {
	spread := uint64(p.longest - p.shortest)
	if spread == 0 {
		return p.shortest
	}
	return p.shortest + time.Duration(seed%(spread+1))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// practiceSeed depends on what is asked and not on the idempotency key, so that a
// repetition gets the same answer.
func practiceSeed(req Request) uint64 {
	hash := fnv.New64a()
	for _, part := range []string{req.Model, req.Instructions, req.Prompt} {
		_, _ = hash.Write([]byte(part)) // never fails
		_, _ = hash.Write([]byte{0})
	}
	if req.Answer != nil {
		_, _ = hash.Write(req.Answer.JSON())
	}
	return hash.Sum64()
}

// practiceText chooses between the sample and a made-up answer, and gives the note
// that belongs to it.
func practiceText(req Request, seed uint64) (string, string) {
	if sample, ok := sampleText(req); ok {
		return sample, ""
	}
	if req.Answer == nil {
		return practiceSentence, PracticeNote
	}
	return string(req.Answer.MadeUp(seed, practiceSentence)), PracticeNote
}

// sampleText is the recorded answer when it fits what is asked. A pipeline whose
// fields were changed after the recording gets a made-up answer instead of an
// error.
func sampleText(req Request) (string, bool) {
	if len(req.Sample) == 0 {
		return "", false
	}
	if req.Answer == nil {
		var text string
		if json.Unmarshal(req.Sample, &text) != nil || blank(text) {
			return "", false
		}
		return text, true
	}
	if _, _, err := fields.Read(string(req.Sample), req.Answer); err != nil {
		return "", false
	}
	return string(req.Sample), true
}

// practiceBytesPerToken makes the pretend bill look like that of a real model.
const practiceBytesPerToken = 4

func practiceUsage(req Request, text string) Usage {
	input := len(req.Instructions) + len(req.Prompt)
	if req.Answer != nil {
		input += len(req.Answer.JSON())
	}
	return Usage{Input: int64(input/practiceBytesPerToken) + 8, Output: int64(len(text)/practiceBytesPerToken) + 1}
}

func practiceRaw(answer Answer) []byte {
	raw, err := json.Marshal(map[string]any{
		"model": answer.Model, "text": answer.Text, "finish": answer.Finish, "note": answer.Note, "practice": true,
	})
	if err != nil {
		return nil // texts always encode
	}
	return raw
}
