package pipeline

import (
	"time"

	"tollgate/app/expr"
)

// ListKey names one of the step lists inside a step: the id of a case or branch,
// or one of the constants below.
type ListKey string

// The lists that have no id of their own.
const (
	ListRoot      ListKey = ""          // the outermost list
	ListOtherwise ListKey = "otherwise" // of a branch
	ListSteps     ListKey = "steps"     // of a kind with a single list
)

// Program is a document made ready to run: every formula and text is compiled.
// It never changes and any number of goroutines may use it at once.
type Program struct {
	doc     Document
	roots   []*Node
	byID    map[string]*Node
	runName *expr.Text
	centre  *expr.Text
	result  []CompiledValue
}

// Document is what the program was compiled from. It must not be changed.
func (p *Program) Document() *Document { return &p.doc }

// Roots are the outermost steps, in order.
func (p *Program) Roots() []*Node { return p.roots }

// Node finds a step by its id, at any depth; nil where there is none.
func (p *Program) Node(stepID string) *Node { return p.byID[stepID] }

// RunName is the text that names a run; nil where the document has none. It
// reads input only.
func (p *Program) RunName() *expr.Text { return p.runName }

// CostCentre is the text that names who bears a run's costs; nil where the document has
// none. It reads input only.
func (p *Program) CostCentre() *expr.Text { return p.centre }

// Result is what a finished run hands back, in order.
func (p *Program) Result() []CompiledValue { return p.result }

// Node is one step of a program, in its place.
type Node struct {
	Step   *Step
	Parent *Node   // the step around it; nil at the top
	List   ListKey // which list of Parent holds it
	Index  int     // place in that list, from 0
	Depth  int     // 1 at the top
	Number string  // as people read it: "3", "3a", "3a1"
	Lists  []ChildList

	siblings []*Node // the whole list that holds it

	Catches []CompiledCatch // what is done about failures, in order

	// Reuse is how old an identical earlier answer may be that is taken instead of doing
	// the step; 0: the step is always done.
	Reuse time.Duration

	config any // the compiled configuration of the step's kind
	refs   []expr.Ref
}

// ChildList is one list of steps inside a step.
type ChildList struct {
	Key   ListKey
	Name  string        // "If yes", "Otherwise"
	When  *expr.Formula // condition of a branch's case; nil for every other list
	Nodes []*Node
}

// ID is the step's id.
func (n *Node) ID() string { return n.Step.ID }

// Kind is the step's kind.
func (n *Node) Kind() Kind { return n.Step.Kind }

// Refs lists every value that running this step itself reads, without those of
// the steps inside it.
func (n *Node) Refs() []expr.Ref { return n.refs }

// Next is the step behind n in its list; nil behind the last.
func (n *Node) Next() *Node {
	if n.Index+1 == len(n.siblings) {
		return nil
	}
	return n.siblings[n.Index+1]
}

// Previous is the step before n in its list; nil before the first.
func (n *Node) Previous() *Node {
	if n.Index == 0 {
		return nil
	}
	return n.siblings[n.Index-1]
}

// Child finds a list by key; nil where there is none.
func (n *Node) Child(key ListKey) *ChildList {
	for i := range n.Lists {
		if n.Lists[i].Key == key {
			return &n.Lists[i]
		}
	}
	return nil
}

// AI is the compiled configuration of an "ai" step; nil for other kinds.
func (n *Node) AI() *CompiledAI { c, _ := n.config.(*CompiledAI); return c }

// Review is the compiled configuration of a "review" step; nil for other kinds.
func (n *Node) Review() *CompiledReview { c, _ := n.config.(*CompiledReview); return c }

// Email is the compiled configuration of an "email" step; nil for other kinds.
func (n *Node) Email() *CompiledEmail { c, _ := n.config.(*CompiledEmail); return c }

// HTTP is the compiled configuration of an "http" step; nil for other kinds.
func (n *Node) HTTP() *CompiledHTTP { c, _ := n.config.(*CompiledHTTP); return c }

// Set is the compiled configuration of a "set" step; nil for other kinds.
func (n *Node) Set() *CompiledSet { c, _ := n.config.(*CompiledSet); return c }

// Branch is the compiled configuration of a "branch" step; nil for other kinds.
func (n *Node) Branch() *CompiledBranch { c, _ := n.config.(*CompiledBranch); return c }

// Repeat is the compiled configuration of a "repeat" step; nil for other kinds.
func (n *Node) Repeat() *CompiledRepeat { c, _ := n.config.(*CompiledRepeat); return c }

// Each is the compiled configuration of an "each" step; nil for other kinds.
func (n *Node) Each() *CompiledEach { c, _ := n.config.(*CompiledEach); return c }

// Parallel is the compiled configuration of a "parallel" step; nil for other kinds.
func (n *Node) Parallel() *CompiledParallel { c, _ := n.config.(*CompiledParallel); return c }

// Wait is the compiled configuration of a "wait" step; nil for other kinds.
func (n *Node) Wait() *CompiledWait { c, _ := n.config.(*CompiledWait); return c }

// Event is the compiled configuration of an "event" step; nil for other kinds.
func (n *Node) Event() *CompiledEvent { c, _ := n.config.(*CompiledEvent); return c }

// Starts is the compiled configuration of a "pipeline" step; nil for other kinds.
func (n *Node) Starts() *CompiledChild { c, _ := n.config.(*CompiledChild); return c }

// Emit is the compiled configuration of an "emit" step; nil for other kinds.
func (n *Node) Emit() *CompiledEmit { c, _ := n.config.(*CompiledEmit); return c }

// Stop is the compiled configuration of a "stop" step; nil for other kinds.
func (n *Node) Stop() *CompiledStop { c, _ := n.config.(*CompiledStop); return c }

// CompiledValue is a named formula.
type CompiledValue struct {
	Name    string
	Formula *expr.Formula
}

// CompiledAI is an AI configuration with its defaults filled in.
type CompiledAI struct {
	Models       []string
	Instructions *expr.Text
	Prompt       *expr.Text
	Files        []*expr.Formula // each gives a file, a list of files, or nothing
	Answer       []Field
	MaxTokens    int
	MaxCost      int64 // micro-USD; 0: only the caps bind
	OnRefusal    RefusalAction
	IfMissing    MissingAction
	Ask          []CompiledPerson
	Keep         KeepLevel
}

// CompiledReview is a Review configuration with its defaults filled in.
type CompiledReview struct {
	Question       *expr.Text
	Body           *expr.Text // nil where there is none
	Facts          []CompiledFact
	Proposal       *expr.Text // nil where nothing is proposed
	ProposalFrom   string     // id of the step that wrote the proposal; may be empty
	Editable       []CompiledEditable
	People         []CompiledPerson
	Rule           PolicyRule
	N              int // answers needed under PolicyN
	AllowRequester bool
	SendBack       bool
	Labels         Labels
	Due            time.Duration // 0: no deadline
	OnDeadline     DeadlineAction
	OnApprove      *expr.Text // what each answer leads to; nil where nothing is told
	OnReject       *expr.Text
	OnSilence      *expr.Text
	Proof          Proof
}

// CompiledFact is one line of what a reviewer should know.
type CompiledFact struct {
	Label string
	Value *expr.Formula
}

// CompiledEditable is a field that a reviewer may change.
type CompiledEditable struct {
	Field Field
	Value *expr.Formula
}

// CompiledPerson is one entry of who is asked; exactly one of its fields is set.
type CompiledPerson struct {
	Email    *expr.Text
	User     string
	Role     string
	Everyone bool
}

// CompiledEmail is an Email configuration.
type CompiledEmail struct {
	To, CC  []*expr.Text
	ReplyTo *expr.Text // nil where there is none
	Subject *expr.Text
	Body    *expr.Text

	Attachments []*expr.Formula // each gives a file, a list of files, or nothing
}

// CompiledSet is a Set configuration.
type CompiledSet struct{ Values []CompiledValue }

// CompiledBranch holds the cases in order; the last has no condition and is
// taken where none before it holds.
type CompiledBranch struct{ Cases []ChildList }
