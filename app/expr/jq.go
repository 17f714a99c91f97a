package expr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// JQ writes a formula in the language of jq, for other systems. root gives what stands for
// a root such as "input" there. What jq has no equal for is an error that names it.
// Numbers are those of jq then, and not exact.
func JQ(source string, root func(name string) string) (string, error) {
	tree, issues := plainSyntax().Parse(source)
	if issues != nil && issues.Err() != nil {
		return "", fmt.Errorf("the formula cannot be read: %w", issues.Err())
	}
	w := jqWriter{root: root}
	out := w.expr(tree.NativeRep().Expr())
	return out, w.err
}

// plainSyntax keeps loops over lists as the calls that people wrote.
var plainSyntax = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(cel.ClearMacros())
	if err != nil {
		panic(fmt.Sprintf("expr: the syntax of formulas does not hold together: %v", err))
	}
	return env
})

// jqWriter writes one formula; the first thing that it cannot write is its error.
type jqWriter struct {
	root func(string) string
	vars []string // of the loops around
	err  error
}

func (w *jqWriter) fail(what string) string {
	if w.err == nil {
		w.err = fmt.Errorf("“%s” has no equal in jq", what)
	}
	return "null"
}

func (w *jqWriter) expr(e ast.Expr) string {
	switch e.Kind() {
	case ast.LiteralKind:
		return w.literal(e)
	case ast.IdentKind:
		if slices.Contains(w.vars, e.AsIdent()) {
			return "$" + e.AsIdent()
		}
		return w.root(e.AsIdent())
	case ast.SelectKind:
		return w.expr(e.AsSelect().Operand()) + "[" + quoteJQ(e.AsSelect().FieldName()) + "]"
	case ast.ListKind:
		return "[" + strings.Join(w.all(e.AsList().Elements()), ", ") + "]"
	case ast.MapKind:
		var entries []string
		for _, entry := range e.AsMap().Entries() {
			pair := entry.AsMapEntry()
			entries = append(entries, "("+w.expr(pair.Key())+"): "+w.expr(pair.Value()))
		}
		return "{" + strings.Join(entries, ", ") + "}"
	case ast.CallKind:
		return w.call(e.AsCall())
	}
	return w.fail("this part")
}

func (w *jqWriter) all(list []ast.Expr) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = w.expr(e)
	}
	return out
}

func (w *jqWriter) literal(e ast.Expr) string {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return quoteJQ(string(v))
	case types.Null:
		return "null"
	case types.Bool, types.Int, types.Uint, types.Double:
		return fmt.Sprint(v.Value())
	}
	return w.fail("this value")
}

// quoteJQ is a text in quotes; jq's are those of JSON, and an insertion needs a backslash
// that JSON never writes before a bracket.
func quoteJQ(s string) string {
	data, _ := json.Marshal(s) // a text always encodes
	return string(data)
}

// jqOperators are written between their two sides.
var jqOperators = map[string]string{
	"_&&_": "and", "_||_": "or", "_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=",
	"_+_": "+", "_-_": "-", "_*_": "*", "_/_": "/", "_%_": "%",
}

// jqForms are the calls with their arguments, the one before the dot first.
var jqForms = map[string]string{
	"!_": "(%s | not)", "-_": "(-(%s))", "_?_:_": "(if %s then %s else %s end)", "_[_]": "%s[%s]",
	"default": "((try (%s) catch null) as $v | if $v == null then %s else $v end)", "has": "((try (%s) catch null) != null)", "size": "(%s | length)", "text": "(%s | tostring)",
	"number": "(%s | tonumber)", "lower": "(%s | ascii_downcase)", "upper": "(%s | ascii_upcase)", "trim": "(%s | trim)",
	"contains": "(%s | contains(%s))", "startsWith": "(%s | startswith(%s))", "endsWith": "(%s | endswith(%s))", "matches": "(%s | test(%s))",
	"split": "(%s | split(%s))", "sum": "(%s | add // 0)", "first": "(%s | first)", "last": "(%s | last)", "abs": "(%s | fabs)",
}

func (w *jqWriter) call(c ast.CallExpr) string {
	name, args := c.FunctionName(), c.Args()
	if c.IsMemberFunction() {
		if loop, ok := w.loop(name, c); ok {
			return loop
		}
		args = append([]ast.Expr{c.Target()}, args...)
	}
	parts := w.all(args)
	if operator, ok := jqOperators[name]; ok && len(parts) == 2 {
		return "(" + parts[0] + " " + operator + " " + parts[1] + ")"
	}
	switch {
	case name == "join" && len(parts) == 1:
		return "(" + parts[0] + ` | map(tostring) | join(", "))`
	case name == "join" && len(parts) == 2:
		return "(" + parts[0] + " | map(tostring) | join(" + parts[1] + "))"
	case (name == "min" || name == "max") && len(parts) > 1:
		return "([" + strings.Join(parts, ", ") + "] | " + name + ")"
	case name == "round" && len(parts) == 1:
		return "(" + parts[0] + " | round)"
	case name == "round" && len(parts) == 2:
		return "(" + parts[0] + " * pow(10; " + parts[1] + ") | round / pow(10; " + parts[1] + "))"
	}
	form, ok := jqForms[name]
	if !ok || strings.Count(form, "%s") != len(parts) {
		return w.fail(name)
	}
	values := make([]any, len(parts))
	for i, part := range parts {
		values[i] = part
	}
	return fmt.Sprintf(form, values...)
}

// jqLoops go through a list: with the list, the variable and what is said of each.
var jqLoops = map[string]string{
	"filter": "[%s[] | . as $%s | select(%s)]", "map": "[%s[] | . as $%s | %s]",
	"exists": "([%s[] | . as $%s | %s] | any)", "all": "([%s[] | . as $%s | %s] | all)",
}

func (w *jqWriter) loop(name string, c ast.CallExpr) (string, bool) {
	form, ok := jqLoops[name]
	if !ok || len(c.Args()) != 2 || c.Args()[0].Kind() != ast.IdentKind {
		return "", false
	}
	list, variable := w.expr(c.Target()), c.Args()[0].AsIdent()
	w.vars = append(w.vars, variable)
	said := w.expr(c.Args()[1])
	w.vars = w.vars[:len(w.vars)-1]
	return fmt.Sprintf(form, list, variable, said), true
}

// JQ writes the text as one that jq makes: with its insertions, as a text of jq in
// quotes; without any, quoted as it is.
func (t *Text) JQ(root func(name string) string) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.formula == nil {
			quoted := quoteJQ(p.literal)
			out.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		inserted, err := JQ(p.formula.source, root)
		if err != nil {
			return "", err
		}
		out.WriteString(`\(` + inserted + `)`)
	}
	return `"` + out.String() + `"`, nil
}
