package expr

import (
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxPattern bounds the source of a pattern, maxProgram what it grows to, and
	// maxMatchWork the product of that and the text, which is the time it takes.
	maxPattern   = 500
	maxProgram   = 2_000
	maxMatchWork = 200_000_000
)

// matches looks for a regular expression anywhere in s. One match cannot be
// interrupted, so its work is bounded before it begins.
func matches(s, pattern string) ref.Val {
	if len(pattern) > maxPattern {
		return refuse("the pattern is longer than %d characters", maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return refuse("the pattern “%s” cannot be read", clip(Plain(pattern), 60))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram || len(program.Inst)*len(s) > maxMatchWork {
		return refuse("the pattern “%s” is too much work for a text this long", clip(Plain(pattern), 60))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return refuse("the pattern “%s” cannot be read", clip(Plain(pattern), 60))
	}
	return types.Bool(re.MatchString(s))
}
