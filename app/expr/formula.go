package expr

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Bounds of one formula.
const (
	MaxSource = 10_000          // characters of its source
	maxCost   = 1_000_000       // steps of CEL's own cost measure
	maxTime   = 2 * time.Second // wall clock, for what the cost does not see
	maxNested = 60              // depth of the source
)

// Scope is what a formula sees: a value for each root that exists at its place.
type Scope map[string]any

// Formula is a compiled formula. It never changes and may be used by any number
// of goroutines at once.
type Formula struct {
	source  string
	program cel.Program
	refs    []Ref
	places  map[int64]string
	info    *ast.SourceInfo
	direct  *Ref // set where the formula only names a place
}

// Compile reads a formula. The error is a *Problem with line and column.
func Compile(src string) (*Formula, error) {
	if err := checkSource(src); err != nil {
		return nil, err
	}
	if direct, ok := spelledOut(src); ok {
		return &Formula{source: src, refs: []Ref{direct}, direct: &direct}, nil
	}
	tree, issues := dialect().Parse(src)
	if issues.Err() != nil {
		return nil, syntaxProblem(issues)
	}
	w := rewriter{
		factory: ast.NewExprFactory(), info: tree.NativeRep().SourceInfo(),
		source: []rune(src), places: map[int64]string{},
	}
	root := tree.NativeRep().Expr()
	direct, isDirect := w.chain(root)
	w.walk(root)
	if w.problem != nil {
		return nil, w.problem
	}
	f := &Formula{source: src, refs: w.refs, places: w.places, info: w.info}
	if isDirect {
		f.direct = &direct
		return f, nil
	}
	program, err := dialect().Program(tree,
		cel.CostTracking(costs{}), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, &Problem{Line: 1, Column: 1, Message: "This formula cannot be used: " + clip(Plain(err.Error()), 200)}
	}
	f.program = program
	return f, nil
}

// spelledOut reads the formula that most insertions are, names after dots, a
// hundred times faster than CEL's parser does. What it does not take is left to
// that parser, errors included.
func spelledOut(src string) (Ref, bool) {
	parts := strings.Split(strings.TrimSpace(src), ".")
	if !isRoot(parts[0]) {
		return Ref{}, false
	}
	for _, name := range parts[1:] {
		if !isName(name) {
			return Ref{}, false
		}
	}
	return Ref{Root: parts[0], Path: parts[1:]}, true
}

// Place is what a formula reads that only names a place, such as input.order; ok tells
// whether it is one.
func Place(src string) (ref Ref, ok bool) { return spelledOut(src) }

// isName reports a name that CEL takes after a dot, words of its syntax left out.
func isName(s string) bool {
	switch s {
	case "", "in", "true", "false", "null":
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// The bounds come before the parser, whose own work they bound.
func checkSource(src string) error {
	switch {
	case strings.TrimSpace(src) == "":
		return &Problem{Line: 1, Column: 1, Message: "The formula is empty. Choose a value or write one."}
	case len(src) > 4*MaxSource || utf8.RuneCountInString(src) > MaxSource:
		return &Problem{Line: 1, Column: 1, Message: fmt.Sprintf("The formula is longer than %d characters.", MaxSource)}
	}
	if err := CheckText(src); err != nil {
		return &Problem{Line: 1, Column: 1, Message: "The formula holds something that is not text: " + err.Error() + "."}
	}
	return nil
}

// Source is what the formula was compiled from.
func (f *Formula) Source() string { return f.source }

// Refs lists what the formula reads, in the order of the source.
func (f *Formula) Refs() []Ref { return f.refs }

// Eval computes the formula. The result is decoded JSON that may share parts
// with scope. The error is a *Problem, or that of a context that ended.
func (f *Formula) Eval(ctx context.Context, scope Scope) (any, error) {
	if f.direct != nil {
		return lookUp(*f.direct, scope)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	v, _, err := f.program.ContextEval(limited, map[string]any(scope))
	if err == nil {
		var out any
		if out, err = native(v); err == nil {
			return out, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, f.explain(err)
}

// Bool computes a condition; a result that is not yes or no is an error.
func (f *Formula) Bool(ctx context.Context, scope Scope) (bool, error) {
	v, err := f.Eval(ctx, scope)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, &Problem{Message: "A condition must give yes or no, but “" + clip(f.source, 80) + "” gives " +
			kindWord(adapt.NativeToValue(v)) + ". Compare it with something."}
	}
	return b, nil
}

// lookUp follows a spelled-out place, without touching what it finds.
func lookUp(r Ref, scope Scope) (any, error) {
	v, ok := scope[r.Root]
	if !ok {
		return nil, &Problem{Message: nothingAt(r.Root)}
	}
	for i, part := range r.Path {
		switch inside := v.(type) {
		case map[string]any:
			v, ok = inside[part]
		case []any:
			n, err := strconv.Atoi(part)
			if ok = err == nil && n >= 0 && n < len(inside); ok {
				v = inside[n]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, &Problem{Message: nothingAt(Ref{Root: r.Root, Path: r.Path[:i+1]}.String())}
		}
	}
	return v, nil
}

// Every missing value is told in the same words, whichever way it was reached.
func nothingAt(place string) string {
	return "There is nothing at " + clip(Plain(place), 120) + ". Choose another value, or say what to take instead with default(…)."
}

// explain turns what CEL says into a sentence with a place.
func (f *Formula) explain(err error) error {
	p := &Problem{}
	place := ""
	var at *types.Err
	if errors.As(err, &at) && at.NodeID() > 0 {
		start := f.info.GetStartLocation(at.NodeID())
		p.Line, p.Column = start.Line(), start.Column()+1
		place = f.places[at.NodeID()]
	}
	var own *sentence
	switch {
	case errors.As(err, &own):
		p.Message = upperFirst(own.text) + "."
	case isMissing(err) && place != "":
		p.Message = nothingAt(place)
	case isMissing(err):
		p.Message = "Something that the formula reads is not there (" + clip(Plain(err.Error()), 80) + "). Say what to take instead with default(…)."
	case strings.Contains(err.Error(), "cost limit exceeded"), strings.Contains(err.Error(), "interrupted"):
		p.Message = "The formula takes too long. Let it read shorter lists, or split it into several."
	default:
		p.Message = "The formula cannot be computed with these values (" + clip(Plain(err.Error()), 120) + ")."
	}
	return p
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// dialect is CEL as formulas have it: its syntax and its loops over lists, with
// our functions in place of its own.
var dialect = sync.OnceValue(func() *cel.Env {
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(adapt),
		cel.ClearMacros(),
		cel.Macros(cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.MapMacro, cel.MapFilterMacro, cel.FilterMacro),
		cel.ParserRecursionLimit(maxNested),
		cel.ParserExpressionSizeLimit(MaxSource),
	}
	for _, name := range Roots() {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	for name, call := range operatorCalls() {
		options = append(options, declare(name, call.most, call))
	}
	for name, f := range functions {
		for n := f.least; n <= f.most; n++ {
			options = append(options, declare(callName(name, n), n, f))
		}
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic(fmt.Sprintf("expr: the formula language does not hold together: %v", err))
	}
	return env
})

// All functions take and give any type: what does not fit is told at run time, in our
// words, with the values at hand.
func declare(name string, args int, f function) cel.EnvOption {
	dyn := make([]*cel.Type, args)
	for i := range dyn {
		dyn[i] = cel.DynType
	}
	options := []cel.OverloadOpt{cel.FunctionBinding(func(args ...ref.Val) ref.Val { return f.call(args) })}
	if f.lazy {
		options = append(options, cel.OverloadIsNonStrict())
	}
	return cel.Function(name, cel.Overload(name, dyn, cel.DynType, options...))
}

// operatorCalls gives the operators of rewrite.go their meaning.
func operatorCalls() map[string]function {
	two := func(f func(a, b ref.Val) ref.Val) function {
		return function{2, 2, false, func(args []ref.Val) ref.Val { return f(args[0], args[1]) }}
	}
	one := func(f func(ref.Val) ref.Val) function {
		return function{1, 1, false, func(args []ref.Val) ref.Val { return f(args[0]) }}
	}
	calls := map[string]function{
		"@neg": one(negate), "@index": one(wholeIndex), "@within": two(contained), "@==": two(equal),
		"@!=": two(func(a, b ref.Val) ref.Val { return not(equal(a, b)) }),
		"@<":  two(compareWith(func(n int) bool { return n < 0 })),
		"@<=": two(compareWith(func(n int) bool { return n <= 0 })),
		"@>":  two(compareWith(func(n int) bool { return n > 0 })),
		"@>=": two(compareWith(func(n int) bool { return n >= 0 })),
	}
	for op := range verbs {
		calls["@"+op] = two(func(a, b ref.Val) ref.Val { return arithmetic(op, a, b) })
	}
	return calls
}

func not(v ref.Val) ref.Val {
	if b, ok := v.(types.Bool); ok {
		return !b
	}
	return v
}

// wholeIndex lets 4 / 2 or 1.0 choose an entry of a list.
func wholeIndex(v ref.Val) ref.Val {
	n, ok := v.(number)
	if !ok {
		return v
	}
	d, err := n.decimal()
	if err != nil {
		return types.WrapErr(err)
	}
	whole, err := d.Int64()
	if err != nil {
		return refuse("%s is not a whole number and cannot choose an entry", clip(n.text, 40))
	}
	return types.Int(whole)
}

// costs tells CEL what a call of ours costs: the bytes it goes over.
type costs struct{}

// CallCost counts texts and digits at a tenth of their bytes, as CEL itself does.
func (costs) CallCost(_, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := 1 + weight(result)
	for _, v := range args {
		cost += weight(v)
	}
	return &cost
}

// Lists and records cost nothing as such: going through them is counted per entry.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v) / 10)
	case number:
		return uint64(len(v.text) / 10)
	}
	return 0
}
