package expr

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Ref is one place that a formula reads: steps.triage.category is the root
// "steps" and the path ["triage", "category"]. The path ends where the formula
// computes which entry it takes. Guarded is set where the formula says what to
// do if nothing is there, by default or has.
type Ref struct {
	Root    string
	Path    []string
	Guarded bool
}

// String writes the place as a formula does.
func (r Ref) String() string { return strings.Join(append([]string{r.Root}, r.Path...), ".") }

// Roots are the names a formula can begin from.
func Roots() []string {
	return []string{"input", "steps", "item", "index", "round", "run", "error", "answer", "callback"}
}

func isRoot(name string) bool {
	for _, r := range Roots() {
		if r == name {
			return true
		}
	}
	return false
}

// internal names of the operators that have our arithmetic instead of CEL's. No
// formula can spell them, as @ does not occur in CEL.
var ownOperators = map[string]string{
	operators.Add: "@+", operators.Subtract: "@-", operators.Multiply: "@*", operators.Divide: "@/",
	operators.Modulo: "@%", operators.Negate: "@neg", operators.Less: "@<", operators.LessEquals: "@<=",
	operators.Greater: "@>", operators.GreaterEquals: "@>=", operators.Equals: "@==",
	operators.NotEquals: "@!=", operators.In: "@within", operators.OldIn: "@within",
}

// keptOperators are CEL's own, which do no arithmetic.
var keptOperators = map[string]bool{
	operators.Conditional: true, operators.LogicalAnd: true, operators.LogicalOr: true,
	operators.LogicalNot: true, operators.NotStrictlyFalse: true,
}

// rewriter walks CEL's syntax tree once. It refuses what formulas do not have,
// exchanges CEL's arithmetic and number literals for exact ones, and notes what
// is read. CEL's own parser bounds the depth of the tree.
type rewriter struct {
	factory ast.ExprFactory
	info    *ast.SourceInfo
	source  []rune
	bound   []string // names of all, exists, map and filter, innermost last
	guarded int      // how many calls of default and has are around
	refs    []Ref
	places  map[int64]string // what each reading node reads, for errors at run time
	problem *Problem
}

// fail keeps the first problem and its place.
func (w *rewriter) fail(e ast.Expr, message string) {
	if w.problem == nil {
		at := w.info.GetStartLocation(e.ID())
		w.problem = &Problem{Line: at.Line(), Column: at.Column() + 1, Message: message}
	}
}

// Comprehensions are what CEL's loops became; everything else is as written.
func (w *rewriter) walk(e ast.Expr) {
	if w.problem != nil {
		return
	}
	if ref, ok := w.chain(e); ok {
		w.note(e, ref)
		return
	}
	switch e.Kind() {
	case ast.LiteralKind:
		w.literal(e)
	case ast.IdentKind:
		w.ident(e)
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		w.call(e)
	case ast.ListKind:
		w.each(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key())
			w.walk(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		w.comprehension(e.AsComprehension())
	case ast.StructKind:
		w.fail(e, "Formulas have no types to build; write a record as {\"name\": value}.")
	case ast.UnspecifiedExprKind:
	}
}

func (w *rewriter) each(list []ast.Expr) {
	for _, e := range list {
		w.walk(e)
	}
}

// chain reads a place that is spelled out from a root: names after dots, texts
// and whole numbers in brackets.
func (w *rewriter) chain(e ast.Expr) (Ref, bool) {
	var path []string
	for {
		switch e.Kind() {
		case ast.IdentKind:
			name := strings.TrimPrefix(e.AsIdent(), ".")
			if !isRoot(name) || w.isBound(name) {
				return Ref{}, false
			}
			reverse(path)
			return Ref{Root: name, Path: path, Guarded: w.guarded > 0}, true
		case ast.SelectKind:
			path = append(path, e.AsSelect().FieldName())
			e = e.AsSelect().Operand()
		case ast.CallKind:
			name, ok := constantIndex(e)
			if !ok {
				return Ref{}, false
			}
			path = append(path, name)
			e = e.AsCall().Args()[0]
		default:
			return Ref{}, false
		}
	}
}

// Only an index that is spelled out names a place that can be checked beforehand.
func constantIndex(e ast.Expr) (string, bool) {
	call := e.AsCall()
	if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
		return "", false
	}
	switch v := call.Args()[1].AsLiteral().(type) {
	case types.String:
		return string(v), true
	case types.Int:
		return strconv.FormatInt(int64(v), 10), true
	}
	return "", false
}

func reverse(s []string) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}

// note records a place, and what each node on the way to it reads.
func (w *rewriter) note(e ast.Expr, ref Ref) {
	w.refs = append(w.refs, ref)
	for n := len(ref.Path); ; n-- {
		w.places[e.ID()] = Ref{Root: ref.Root, Path: ref.Path[:n]}.String()
		switch e.Kind() {
		case ast.SelectKind:
			e = e.AsSelect().Operand()
		case ast.CallKind:
			e = e.AsCall().Args()[0]
		default:
			return
		}
	}
}

func (w *rewriter) isBound(name string) bool {
	for _, b := range w.bound {
		if b == name {
			return true
		}
	}
	return false
}

func (w *rewriter) ident(e ast.Expr) {
	name := e.AsIdent()
	if w.isBound(name) {
		return
	}
	w.fail(e, "“"+clip(Plain(name), 60)+"” is not known here. Begin with input, steps, item, index, round, run or error; put texts in quotes.")
}

// The names of a loop hide roots of the same name inside it, as CEL has it.
func (w *rewriter) comprehension(c ast.ComprehensionExpr) {
	w.walk(c.IterRange())
	w.walk(c.AccuInit())
	before := len(w.bound)
	w.bound = append(w.bound, c.IterVar(), c.AccuVar())
	if c.HasIterVar2() {
		w.bound = append(w.bound, c.IterVar2())
	}
	w.walk(c.LoopCondition())
	w.walk(c.LoopStep())
	w.walk(c.Result())
	w.bound = w.bound[:before]
}

// x.f(y) and f(x, y) are the same call, so people need not know which one a function wants.
func (w *rewriter) call(e ast.Expr) {
	call := e.AsCall()
	name := call.FunctionName()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	switch {
	case keptOperators[name]:
		w.each(args)
	case name == operators.Index:
		w.index(e, args)
	case ownOperators[name] != "":
		w.each(args)
		e.SetKindCase(w.factory.NewCall(e.ID(), ownOperators[name], args...))
	default:
		w.function(e, name, args)
	}
}

// index lets a whole number choose an entry, whichever way it was computed.
func (w *rewriter) index(e ast.Expr, args []ast.Expr) {
	w.each(args)
	if args[1].Kind() != ast.LiteralKind {
		at := w.factory.NewCall(args[1].ID(), "@index", w.factory.CopyExpr(args[1]))
		e.SetKindCase(w.factory.NewCall(e.ID(), operators.Index, args[0], at))
	}
}

// The number of arguments is checked here, where the place in the source is known.
func (w *rewriter) function(e ast.Expr, name string, args []ast.Expr) {
	f, known := functions[name]
	shown := clip(Plain(name), 60)
	switch {
	case !known:
		w.fail(e, "There is no function “"+shown+"”.")
		return
	case len(args) < f.least || len(args) > f.most:
		w.fail(e, "“"+shown+"” takes "+countWords(f.least, f.most)+", but has "+strconv.Itoa(len(args))+".")
		return
	}
	for i, arg := range args {
		if guard := f.lazy && i == 0; guard {
			w.guarded++
			w.walk(arg)
			w.guarded--
		} else {
			w.walk(arg)
		}
	}
	e.SetKindCase(w.factory.NewCall(e.ID(), callName(name, len(args)), args...))
}

// callName is the internal name of a function with so many arguments.
func callName(name string, args int) string { return "@" + name + "/" + strconv.Itoa(args) }

func countWords(least, most int) string {
	switch {
	case least != most:
		return strconv.Itoa(least) + " to " + strconv.Itoa(most) + " values"
	case least == 1:
		return "1 value"
	}
	return strconv.Itoa(least) + " values"
}

// literal exchanges a decimal literal for the exact number its text says.
func (w *rewriter) literal(e ast.Expr) {
	switch v := e.AsLiteral().(type) {
	case types.Double:
		text := w.decimalText(e)
		if f, err := strconv.ParseFloat(text, 64); err != nil || f != float64(v) {
			w.fail(e, "This number cannot be read; write it like 1234.50.")
			return
		}
		e.SetKindCase(w.factory.NewLiteral(e.ID(), number{text}))
	case types.Uint:
		w.fail(e, "Numbers have no “u” at their end here.")
	case types.Bytes:
		w.fail(e, "Formulas have no bytes; write a text without the b before its quotes.")
	case types.String:
		if !utf8.ValidString(string(v)) {
			w.fail(e, "This text is not valid UTF-8.")
		}
	}
}

// decimalText reads the literal's digits from the source, since CEL keeps only
// the nearest binary fraction, and writes them as JSON does.
func (w *rewriter) decimalText(e ast.Expr) string {
	at, ok := w.info.GetOffsetRange(e.ID())
	if !ok {
		return ""
	}
	i := int(at.Start)
	sign := ""
	for i < len(w.source) && (w.source[i] == '-' || w.source[i] == ' ' || w.source[i] == '\t' || w.source[i] == '\n' || w.source[i] == '\r') {
		if w.source[i] == '-' {
			sign = "-"
		}
		i++
	}
	start := i
	for i < len(w.source) && partOfNumber(w.source, i) {
		i++
	}
	digits := string(w.source[start:i])
	if strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	return sign + trimZeros(digits)
}

func partOfNumber(s []rune, i int) bool {
	switch c := s[i]; {
	case c >= '0' && c <= '9', c == '.', c == 'e', c == 'E':
		return true
	case c == '+' || c == '-':
		return i > 0 && (s[i-1] == 'e' || s[i-1] == 'E')
	}
	return false
}

// trimZeros drops leading zeros, which CEL allows and JSON does not.
func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9' {
		s = s[1:]
	}
	return s
}
