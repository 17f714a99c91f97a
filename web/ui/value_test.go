package ui

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func shownAs(t testing.TB, json string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, Value{JSON: []byte(json), Label: "Value"}.Render(context.Background(), &out))
	return out.String()
}

func TestValueShapes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, json string
		shape      shapeOf
	}{
		{"object", `{"b":1,"a":2}`, asPairs},
		{"records of one shape", `[{"a":1,"b":2},{"a":3,"b":4}]`, asTable},
		{"records of different shapes", `[{"a":1},{"b":2}]`, asList},
		{"fields in another order", `[{"a":1,"b":2},{"b":1,"a":2}]`, asList},
		{"too many columns", `[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}]`, asList},
		{"scalars", `[1,"two",null]`, asList},
		{"mixed", `[{"a":1},2]`, asList},
		{"text", `"hello"`, asText},
		{"number", `9007199254740993`, asText},
		{"yes", `true`, asText},
		{"null", `null`, asNothing},
		{"empty object", `{}`, asNothing},
		{"empty list", ` [ ] `, asNothing},
		{"no JSON", `{oops`, asRaw},
		{"nothing", ``, asRaw},
		{"broken UTF-8 in text", "\"a\xff\"", asText},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.shape, parse([]byte(c.json)).Shape)
		})
	}
}

func TestValueKeepsOrderAndDigits(t *testing.T) {
	t.Parallel()
	n := parse([]byte(`{"zebra":9007199254740993,"apple":1.50,"mango":1e400}`))
	require.Equal(t, []string{"zebra", "apple", "mango"}, n.Keys)
	require.Equal(t, "9007199254740993", n.Items[0].Text)
	require.Equal(t, "1.50", n.Items[1].Text)
	require.Equal(t, "1e400", n.Items[2].Text)
}

func TestValueIsBounded(t *testing.T) {
	t.Parallel()
	long := parse([]byte("[" + strings.Repeat("1,", 999) + "1]"))
	require.Len(t, long.Items, mostEntries)
	require.Equal(t, 1000-mostEntries, long.Omitted)

	for name, json := range map[string]string{
		"brackets":        strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999),
		"ten megabytes":   strings.Repeat("[", 10<<20),
		"objects":         strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000),
		"one large text":  `"` + strings.Repeat("x", 5<<20) + `"`,
		"many rows":       "[" + strings.Repeat(`{"a":1,"b":"<script>"},`, 9_000) + `{"a":1,"b":2}]`,
		"deep but narrow": strings.Repeat(`{"a":[`, 40) + strings.Repeat("]}", 40),
	} {
		out := shownAs(t, json)
		require.Less(t, len(out), 200<<10, name)
		require.Less(t, len(Pretty([]byte(json))), 4*len(json)+1<<20, name)
	}
}

func TestCodeSaysWhatIsCut(t *testing.T) {
	t.Parallel()
	show := func(c Code) string {
		var out strings.Builder
		require.NoError(t, c.Render(context.Background(), &out))
		return out.String()
	}
	require.NotContains(t, show(Code{Label: "Raw", Text: "short"}), "The first")
	require.Contains(t, show(Code{Label: "Raw", Text: strings.Repeat("é", 30<<10)}), "The first 20 KB of 60 KB.")
	require.Contains(t, show(Code{Label: "Raw", Text: "part", Size: 4 << 20}), "The first 4 B of 4 MB.")
}

// FuzzValue: whatever comes in, a page comes out, no longer than its limits
// allow and without markup that came from the value.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `[{"a":1},{"a":"<script>x</script>"}]`, "\"\xed\xa0\x80\\ud800\"", "[[[[[[", `{"":{"":{"":{"":{"":1}}}}}`, "null", `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out := shownAs(t, string(data))
		if strings.Contains(strings.ToLower(out), "<script") {
			t.Fatalf("markup came through: %q", out)
		}
		if strings.ContainsRune(out, 0) {
			t.Fatal("a NUL came through")
		}
	})
}
