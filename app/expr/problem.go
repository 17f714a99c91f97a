package expr

import "fmt"

// Problem is a mistake in a formula or text, told in a sentence for the person
// who wrote it. Line and Column count from 1, Column in characters; both are 0
// when the mistake shows only while values are read.
type Problem struct {
	Line, Column int
	Message      string
}

// Error gives the sentence, after its place when that is known.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}
