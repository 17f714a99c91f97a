package pipeline

// Severity says how much a problem matters.
type Severity string

// The severities.
const (
	Blocks  Severity = "blocks"  // the document cannot be published
	Warning Severity = "warning" // it can, but something may go wrong
	Tip     Severity = "tip"
)

// Problem is something to fix in a document, in a sentence that names the place
// and the fix.
type Problem struct {
	Severity Severity
	Step     string // id of the step; empty for the document itself
	Field    string // path within the step or document, such as "with.prompt"
	Message  string
	Says     string // the message without the name of its step; beside a field it is enough
}

// Invalid is the error of a document that cannot be used, with everything found.
type Invalid struct{ Problems []Problem }

// Error gives the first sentence and how many more there are.
func (e *Invalid) Error() string {
	switch n := len(e.Problems); n {
	case 0:
		return "the pipeline is not valid"
	case 1:
		return e.Problems[0].Message
	default:
		return e.Problems[0].Message + " (and more: " + plural(n-1, "problem", "problems") + ")"
	}
}

// Blocking picks the problems that stop a document from being published.
func Blocking(all []Problem) []Problem {
	var out []Problem
	for _, p := range all {
		if p.Severity == Blocks {
			out = append(out, p)
		}
	}
	return out
}
