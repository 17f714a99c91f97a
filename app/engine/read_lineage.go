package engine

import (
	"context"
	"slices"
	"time"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/tenants"
)

// Lineage tells where what a step run gave comes from: what each field was made of, and
// what those were made of, back to the run's input.
type Lineage struct {
	Run     Run
	Program *pipeline.Program
	Fields  []FieldOrigin // of the step itself, as its outputs are listed
	Origins []Origin      // the step itself, then those that went into it, the nearest first
	Cut     bool          // more went into it than is told
}

// FieldOrigin is what one field of a step's output was made of.
type FieldOrigin struct {
	Field pipeline.Field
	Reads []Read
}

// Read is one value that was read.
type Read struct {
	Ref expr.Ref
	// Row is where a step's value was found, or the item of whose value it is a part; zero
	// where it is neither, or nothing had run there.
	Row StepRunID
}

// Origin is a step run that went into a result, with who and what made its own.
type Origin struct {
	Row     StepRun
	Node    *pipeline.Node
	Around  []StepRun // what it stands in, outermost first
	Version int       // of the pipeline, when it began
	Reads   []Read    // what went into those of its fields that are asked for
	Parts   int       // of a list: how many items gave results, of which the first stands for all
	Models  []string  // that answered, as they were billed; several after fall-backs or new tries
	Review  *review.Detail
	Event   *EventOrigin
	Reused  *ReusedOrigin
	Child   *ChildOrigin
}

// ChildOrigin is the run that a step started, and whose result it gave.
type ChildOrigin struct {
	Run      RunID
	Pipeline string
	Number   int64
}

// EventOrigin is the event that a step took.
type EventOrigin struct {
	ID     EventID
	Sender string
	SentAt time.Time
}

// ReusedOrigin is the step run whose output was taken over.
type ReusedOrigin struct {
	Run        RunID
	Pipeline   string
	Number     int64 // of the run
	Step       StepRunID
	EndedAt    time.Time
	CostMicros int64 // what it cost there, in micro-USD
}

// Bounds of one answer: how many step runs are followed, and how many values in them.
const (
	maxOrigins = 40
	maxReads   = 2_000
)

// LineageOf follows the output of a step run of a run. It looks at as many rows as went
// into it, up to a bound, however many the run has. A step that has not ended well has no
// output and no lineage: none is nil. It returns ErrNoPart where the run has no such step.
func (e *Engine) LineageOf(ctx context.Context, tx tenants.Tx, id RunID, step StepRunID) (*Lineage, error) {
	t, err := newTracer(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if err := t.loadChain(step); err != nil {
		return nil, err
	}
	row, ok := t.rows[step]
	if !ok {
		return nil, ErrNoPart
	}
	if IsPart(row.Kind) || row.Output.IsZero() || row.State != StepDone && row.State != StepSkipped {
		return nil, nil
	}
	if t.program.Node(row.StepID) == nil {
		return nil, nil
	}
	if err := t.follow(step); err != nil {
		return nil, err
	}
	lineage := &Lineage{Run: t.run, Program: t.program, Fields: t.fieldsOf(row), Origins: t.told(), Cut: t.cut}
	return lineage, e.completeOrigins(ctx, tx, lineage)
}

// told are the origins in the order in which they were come to.
func (t *tracer) told() []Origin {
	var origins []Origin
	for _, id := range t.order {
		row := t.rows[id]
		origin := Origin{Row: row, Node: t.program.Node(row.StepID), Around: t.around(row), Parts: t.parts[id]}
		for _, key := range t.asked[id] {
			for _, read := range t.reads[key] {
				if !slices.ContainsFunc(origin.Reads, func(r Read) bool { return sameRead(r, read) }) {
					origin.Reads = append(origin.Reads, read)
				}
			}
		}
		origins = append(origins, origin)
	}
	return origins
}

func sameRead(a, b Read) bool { return a.Row == b.Row && a.Ref.String() == b.Ref.String() }

// fieldsOf tells each field of a step by itself.
func (t *tracer) fieldsOf(row StepRun) []FieldOrigin {
	var out []FieldOrigin
	for _, field := range pipeline.Outputs(*t.program.Node(row.StepID).Step) {
		out = append(out, FieldOrigin{Field: field, Reads: t.reads[fieldKey{row.ID, field.Name}]})
	}
	return out
}
