package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values are compared as people type them, whatever their type; what is no plain value, or
// empty, finds nothing.
func TestRunsAreFoundByPlainValues(t *testing.T) {
	t.Parallel()
	d := Document{Semantics: Semantics, Name: "Orders", Steps: []Step{{ID: "a", Name: "A", Kind: KindSet, With: &Set{Values: []Value{{Name: "n", Formula: "1"}}}}},
		Input: []Field{
			{Name: "order", Label: "Order number", Type: TypeText}, {Name: "total", Type: TypeMoney}, {Name: "rush", Type: TypeYesNo},
			{Name: "count", Type: TypeNumber}, {Name: "day", Type: TypeDate}, {Name: "mail", Type: TypeFile},
		},
		Result: []Value{{Name: "outcome", Formula: "1"}},
		Search: []string{"input.order", "input.total", "input.rush", "input.count", "input.day", "result.outcome"},
	}
	p, err := Compile(d)
	require.NoError(t, err)
	require.Equal(t, 4, p.Document().needs(), "an older build must leave such a document alone")
	got := p.FoundInInput([]byte(`{"order":"  NL-2026\t 117 ","total":{"amount":"420.00","currency":"EUR"},"rush":true,"count":7.50,"day":"2026-11-30","mail":{"name":"x"}}`))
	require.Equal(t, []Found{
		{"input.order", "nl-2026 117"}, {"input.total", "420.00 eur"}, {"input.rush", "yes"}, {"input.count", "7.50"}, {"input.day", "2026-11-30"},
	}, got)
	require.Equal(t, []Found{{"result.outcome", "paid"}}, p.FoundInResult([]byte(`{"outcome":"Paid"}`)))
	for _, nothing := range []string{`{"order":" "}`, `{"order":["x"]}`, `{"order":{"a":1}}`, `{"order":null}`, `[]`, `{`, ``} {
		require.Empty(t, p.FoundInInput([]byte(nothing)), nothing)
	}
	hostile := p.FoundInInput([]byte(`{"order":"\u0000\ud83d` + strings.Repeat("é", 500) + `"}`))
	require.Len(t, []rune(hostile[0].Value), MaxSearchText)
	require.Equal(t, []SearchField{{"input.order", "Order number"}, {"input.total", "total"}}, p.Document().SearchFields()[:2])
	require.Len(t, d.Searchable(), 6, "a file is no plain value")
	d.Search = []string{"input.mail", "input.order", "input.order", "steps.a.n"}
	require.Len(t, Blocking(Check(d)), 3)
}
