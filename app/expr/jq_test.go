package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Formulas are written for jq; what it has no equal for is named.
func TestFormulasInJQ(t *testing.T) {
	t.Parallel()
	root := func(name string) string { return "$" + name }
	for source, want := range map[string]string{
		`input.order`: `$input["order"]`,
		`steps.a.verdict == "approved" && !steps.b.ok`: `(($steps["a"]["verdict"] == "approved") and ($steps["b"]["ok"] | not))`,
		`default(steps.a.x, 0) > 1.5`:                  `(((try ($steps["a"]["x"]) catch null) as $v | if $v == null then 0 else $v end) > 1.5)`,
		`size(input.rows.filter(r, r.n >= 2))`:         `([$input["rows"][] | . as $r | select(($r["n"] >= 2))] | length)`,
		`input.a ? "x\"y\\(z)" : null`:                 `(if $input["a"] then "x\"y\\(z)" else null end)`,
		`[1, -2].map(x, x * 2).join("; ")`:             `([[1, -2][] | . as $x | ($x * 2)] | map(tostring) | join("; "))`,
		`{"a": input["b c"]}`:                          `{("a"): $input["b c"]}`,
		`round(input.n / 3, 2)`:                        `(($input["n"] / 3) * pow(10; 2) | round / pow(10; 2))`,
	} {
		got, err := JQ(source, root)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, says := range map[string]string{
		`money(1, "EUR")`: "money", `timestamp(input.a)`: "timestamp", `1 +`: "cannot be read", `duration("1h")`: "duration",
	} {
		_, err := JQ(source, root)
		require.ErrorContains(t, err, says, source)
	}
}
