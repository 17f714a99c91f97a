package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// EventID identifies an event.
type EventID = tenants.IDOf[Event]

// Event is something that happened outside and that runs may wait for.
type Event struct {
	ID       EventID // zero: made when it is sent
	Name     string
	Key      string // tells the events of one name apart, such as an order's number; may be empty
	Data     []byte // JSON of at most MaxEvent bytes
	SentAt   time.Time
	Sender   string // who sent it, in words
	SenderID string // the sender's own number for it; a second event of the name with it is the first again
}

// Limits of an event. Its names are as long as a step can name.
const (
	MaxEvent     = pipeline.MaxEvent
	MaxEventKey  = 200 // characters
	maxEventName = pipeline.MaxName
	// EventsKept is how long an event can be used. The run that uses it must be younger.
	EventsKept = 30 * 24 * time.Hour
)

// BadEvent tells that an event cannot be sent, or waited for, as it is.
type BadEvent struct {
	Field  string // name, key, data, sender or sender_id
	Reason string // a sentence for people
}

// Error is the sentence.
func (e *BadEvent) Error() string { return e.Reason }

// clean brings an event into the form in which it is stored and compared.
func (e Event) clean() (Event, error) {
	var err error
	if e.Name, err = eventText("name", "The event’s name", e.Name, maxEventName); err != nil {
		return e, err
	}
	if e.Name == "" {
		return e, &BadEvent{"name", "The event has no name. Give it the one that the step waits for."}
	}
	if e.Key, err = eventText("key", "The event’s key", e.Key, MaxEventKey); err != nil {
		return e, err
	}
	if e.SenderID, err = eventText("sender_id", "The sender’s own number", e.SenderID, MaxEventKey); err != nil {
		return e, err
	}
	if e.Sender, err = eventText("sender", "The sender’s name", e.Sender, MaxEventKey); err != nil {
		return e, err
	}
	if e.Sender == "" {
		return e, &BadEvent{"sender", "The event does not say who sent it."}
	}
	return e, e.checkData()
}

// checkData refuses data that no step could read. The error about JSON has its place.
func (e Event) checkData() error {
	if len(e.Data) > MaxEvent {
		return &BadEvent{"data", fmt.Sprintf("The data is larger than %d KB, which is the most that an event can carry. Send less, or where it can be found.", MaxEvent>>10)}
	}
	_, err := expr.DecodeJSON(e.Data)
	return err
}

// eventText trims a text and refuses what cannot be shown in one line. Both sides pass
// it, so what a sender and a step write the same way is the same.
func eventText(field, what, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n > most {
		return "", &BadEvent{field, fmt.Sprintf("%s has %d characters; at most %d are possible.", what, n, most)}
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", &BadEvent{field, what + " has a line break or a hidden control character in it. Type it again."}
	}
	return text, nil
}

// eventWait is the wait of a step for an event of a name and a key, until due. A key
// that no event can have fails the step at once.
func eventWait(step StepRunID, name, key string, due *time.Time) (Wait, *Failure) {
	wanted, err := Event{Name: name, Key: key, Sender: "step", Data: []byte("null")}.clean()
	if err != nil {
		return Wait{}, &Failure{Class: ClassFormula, Message: err.Error()}
	}
	return Wait{StepRun: step, Kind: WaitEvent, EventName: wanted.Name, EventKey: wanted.Key, Due: due}, nil
}
