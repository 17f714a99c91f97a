package pipeline

import "time"

// Limits of a document and of what it may carry. Each is named in the sentence
// that a person reads when it is passed.
const (
	// MaxSteps is the most steps one pipeline may have, nested ones included.
	MaxSteps = 1000
	// MaxNesting is how deep steps may sit inside steps; the outermost list is 1.
	MaxNesting = 8
	// MaxDocument is the most bytes a document may take as JSON.
	MaxDocument = 1 << 20
	// MaxItems is the most items one "Do for each" may go through.
	MaxItems = 100_000
	// MaxChildDepth is how deep pipelines may start pipelines.
	MaxChildDepth = 16
	// MaxDescendants is the most runs one run may start, directly or not.
	MaxDescendants = 1000
	// MaxEvent is the most bytes one event may carry.
	MaxEvent = 256 << 10
	// MaxValue is the most bytes one value may take as JSON.
	MaxValue = 32 << 20
	// MaxStoredFile is the most bytes one stored file may have.
	MaxStoredFile = 50 << 20
	// MaxInputFile is the most bytes a file handed to the start form may have.
	MaxInputFile = 10 << 20
	// MaxHTTPAnswer is the most bytes read from another system's answer.
	MaxHTTPAnswer = 32 << 20
	// MaxRunDays is how long a run may stay open.
	MaxRunDays = 3 * 366

	// MaxName is the most characters of a name shown on screens and in mails.
	MaxName = 120
	// MaxText is the most characters of one prompt, mail text or formula source.
	MaxText = 100_000
	// MaxFields is the most fields in one list of fields, facts or values.
	MaxFields = 100
	// MaxPeople is the most people one review may ask.
	MaxPeople = 50
	// MaxModels is the longest chain of models that one step may try.
	MaxModels = 8
	// MaxAIFiles is the most files one question to a model may come with, MaxAIFileBytes the
	// most bytes they may have together.
	MaxAIFiles     = 20
	MaxAIFileBytes = 16 << 20
	// MaxCases is the most cases of one decision or branches side by side.
	MaxCases = 50
	// MaxRounds is the most rounds of one loop.
	MaxRounds = 1000
	// MaxAnswerTokens is the most tokens one model answer may be asked to have.
	MaxAnswerTokens = 128_000
	// DefaultRounds, DefaultLoopCost and DefaultLoopTime are what a new loop begins with:
	// small enough to bound a mistake, in rounds, micro-USD and time.
	DefaultRounds   = 5
	DefaultLoopCost = 1_000_000
	DefaultLoopTime = Duration(time.Hour)
	// DefaultReuse is how old an answer may be that is taken again where the step names no
	// time, MaxReuse how old at most.
	DefaultReuse = Duration(7 * 24 * time.Hour)
	MaxReuse     = Duration(365 * 24 * time.Hour)
	// DefaultAnswerTokens is asked of a model where the step names no number.
	DefaultAnswerTokens = 2048
)

// Semantics is the newest number of the rules by which documents run. Every number
// that was ever published stays supported: 1 has the kinds that call outside, ask,
// decide and compute, 2 also those that loop, run side by side, wait and stop, 3 those
// that reach other systems and pipelines, and what is done about failures, 4 the fields that
// runs are found by, 5 the chain of models: what is asked anew, of which model, and of whom.
const Semantics = 5
