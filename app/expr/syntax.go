package expr

import (
	"strings"

	"github.com/google/cel-go/cel"
)

// syntaxProblem puts the parser's first complaint into a sentence.
func syntaxProblem(issues *cel.Issues) *Problem {
	all := issues.Errors()
	if len(all) == 0 {
		return &Problem{Line: 1, Column: 1, Message: "The formula cannot be read."}
	}
	first := all[0]
	return &Problem{
		Line: max(first.Location.Line(), 1), Column: max(first.Location.Column(), 0) + 1,
		Message: complaint(first.Message),
	}
}

// The parser lists every token it would have taken, which is noise to people; what it
// stumbled over is kept. Unknown complaints are passed on cut.
func complaint(message string) string {
	message = strings.TrimPrefix(message, "Syntax error: ")
	switch {
	case strings.Contains(message, "'<EOF>'"):
		return "The formula ends too early. Something is missing, perhaps a closing bracket or quote."
	case strings.Contains(message, "recursion"):
		return "The formula is nested too deeply. Split it into several."
	case strings.Contains(message, "token recognition error"):
		return "The formula cannot be read at " + quoted(message) + ". Put texts in quotes."
	case strings.HasPrefix(message, "mismatched input"), strings.HasPrefix(message, "extraneous input"),
		strings.HasPrefix(message, "no viable alternative"), strings.HasPrefix(message, "missing "):
		return "The formula cannot be read at " + quoted(message) + "."
	case strings.Contains(message, "reserved identifier"):
		return "This word is reserved and cannot be used as a name here."
	case strings.Contains(message, "macro"), strings.Contains(message, "argument"):
		return "all, exists, map and filter need a name and a condition, as in items.all(x, x.price > 0)."
	}
	return "The formula cannot be read: " + clip(Plain(message), 120) + "."
}

// quoted takes the piece of source that the parser puts between apostrophes.
func quoted(message string) string {
	_, rest, ok := strings.Cut(message, "'")
	if !ok {
		return "this place"
	}
	if end := strings.Index(rest, "' expecting"); end >= 0 {
		rest = rest[:end]
	}
	return "“" + clip(Plain(strings.TrimSuffix(rest, "'")), 40) + "”"
}
