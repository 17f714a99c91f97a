package pipeline

import "time"

// Kind says what a step does.
type Kind string

// The kinds of steps, in the order in which a builder is offered them.
const (
	KindAI       Kind = "ai"
	KindReview   Kind = "review"
	KindBranch   Kind = "branch"
	KindRepeat   Kind = "repeat"
	KindEach     Kind = "each"
	KindParallel Kind = "parallel"
	KindWait     Kind = "wait"
	KindEvent    Kind = "event"
	KindHTTP     Kind = "http"
	KindEmail    Kind = "email"
	KindSet      Kind = "set"
	KindChild    Kind = "pipeline"
	KindEmit     Kind = "emit"
	KindStop     Kind = "stop"
)

// kindFacts is what the room knows about a kind: the words people read, and an empty
// configuration to decode into.
type kindFacts struct {
	title string
	empty func() Config
}

var kinds = map[Kind]kindFacts{
	KindAI:       {"Ask AI", func() Config { return &AI{} }},
	KindReview:   {"Ask a person", func() Config { return &Review{} }},
	KindBranch:   {"Decide", func() Config { return &Branch{} }},
	KindRepeat:   {"Repeat until", func() Config { return &Repeat{} }},
	KindEach:     {"Do for each at once", func() Config { return &Each{} }},
	KindParallel: {"Do side by side", func() Config { return &Parallel{} }},
	KindWait:     {"Wait until", func() Config { return &Wait{} }},
	KindEvent:    {"Wait for an event", func() Config { return &Event{} }},
	KindHTTP:     {"Get or send data", func() Config { return &HTTP{} }},
	KindEmail:    {"Send an e-mail", func() Config { return &Email{} }},
	KindSet:      {"Change data", func() Config { return &Set{} }},
	KindChild:    {"Run another pipeline", func() Config { return &Child{} }},
	KindEmit:     {"Send an event", func() Config { return &Emit{} }},
	KindStop:     {"Stop", func() Config { return &Stop{} }},
}

// Kinds lists every kind in the order in which a builder is offered them.
func Kinds() []Kind {
	return []Kind{
		KindAI, KindReview, KindBranch, KindRepeat, KindEach, KindParallel, KindWait,
		KindEvent, KindHTTP, KindEmail, KindSet, KindChild, KindEmit, KindStop,
	}
}

// Known reports whether k is a kind of the document.
func (k Kind) Known() bool { _, ok := kinds[k]; return ok }

// Title is what people read for k, such as "Ask AI"; an unknown kind is its own title.
func (k Kind) Title() string {
	if f, ok := kinds[k]; ok {
		return f.title
	}
	return string(k)
}

// Prefilled are the settings that a new step of kind k begins with; nil for a kind that
// is not known.
func (k Kind) Prefilled() Config {
	switch k {
	case KindRepeat:
		return &Repeat{MaxRounds: DefaultRounds, MaxCost: DefaultLoopCost, MaxTime: DefaultLoopTime, AtLimit: LimitFail}
	case KindEach:
		return &Each{AtOnce: 5}
	case KindHTTP:
		return &HTTP{Method: "GET"}
	case KindBranch:
		return &Branch{Cases: []Case{{ID: "yes", Name: "If yes"}}}
	case KindParallel:
		return &Parallel{Branches: []Lane{{ID: "first", Name: "First"}, {ID: "second", Name: "Second"}}}
	case KindReview:
		due := Duration(2 * 24 * time.Hour)
		return &Review{People: []Person{{Everyone: true}}, Due: &due}
	case KindWait:
		pause := Duration(24 * time.Hour)
		return &Wait{For: &pause}
	case KindEvent:
		limit := Duration(3 * 24 * time.Hour)
		return &Event{Deadline: &limit, OnDeadline: DeadlineFail}
	case KindChild:
		return &Child{Wait: true}
	}
	if facts, ok := kinds[k]; ok {
		return facts.empty()
	}
	return nil
}

// Config is the configuration of one kind of step: a pointer to AI, Review,
// Branch, Repeat, Each, Parallel, Wait, Event, HTTP, Email, Set, Child, Emit or Stop.
type Config interface {
	// Kind is the kind of step that this configuration belongs to.
	Kind() Kind
	// lists are the step lists nested inside, in the order in which people read them.
	lists() []nested
	// slots are the formulas and texts of the configuration itself.
	slots() []slot
}

// nested is one list of steps inside a step.
type nested struct {
	key   ListKey
	name  string
	path  string // where the list sits in the document, from its step
	steps []Step
}

// innerSlot is a place that is read behind a list of steps inside and sees what
// those steps gave, too.
type innerSlot struct {
	slot
	list ListKey
}

// innerSlots are those of a configuration that has such lists.
func innerSlots(c Config) []innerSlot {
	if group, ok := c.(interface{ inner() []innerSlot }); ok {
		return group.inner()
	}
	return nil
}

// slot is one place of a configuration that holds a formula or a text.
type slot struct {
	path   string
	label  string // how the place is called in sentences
	source string
	text   bool // a text with insertions, not a bare formula
}
