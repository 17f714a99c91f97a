package expr_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

func TestJSONComesBackExactly(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`null`, `true`, `""`, `[]`, `{}`, `0`, `-0`, `-0.0`, `1E+2`, `1e400`, `0.10`,
		`9007199254740993`, `123456789012345678901234567890.123456789`,
		`"a\u0000b"`, `{"a\u0000b":"a\u0000"}`, `"\\u0000 is six characters"`,
		`"\ud800"`, `"x\udc00\ud800y"`, `"\ud83d\ude00"`, `"😀 ünï \u2028 </script>"`,
		`"\"\\\/\b\f\n\r\t\u001f\u007f"`, ` { "b" : [ 1 , {"a":null} ] , "a" : false } `,
	} {
		t.Run(src, func(t *testing.T) {
			t.Parallel()
			v, err := expr.DecodeJSON([]byte(src))
			require.NoError(t, err)
			once, err := expr.EncodeJSON(v)
			require.NoError(t, err)
			require.True(t, json.Valid(once), "%s", once)
			again, err := expr.DecodeJSON(once)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(v, again))
			require.Empty(t, cmp.Diff(expected(t, src), expected(t, string(once))))
		})
	}
}

// expected decodes with the standard library, which is the other opinion.
func expected(t testing.TB, src string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(src))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func TestEncodingIsStable(t *testing.T) {
	t.Parallel()
	got, err := expr.EncodeJSON(map[string]any{
		"b": []any{1, int64(-2), uint64(math.MaxUint64), 0.5, json.Number("1.50")},
		"a": "<&>\u2028", "": nil,
	})
	require.NoError(t, err)
	require.Equal(t, `{"":null,"a":"<&>`+"\u2028"+`","b":[1,-2,18446744073709551615,0.5,1.50]}`, string(got))
}

func TestBadJSONIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		``:                           "ends too early",
		`{"a":`:                      "ends too early (at a, byte 5)",
		`[1,]`:                       "unexpected ']'",
		`{"a":{"b":[1,x]}}`:          "unexpected 'x' in the JSON (at a.b[1], byte 13)",
		`{"a":1,"a":2}`:              `the name "a" appears twice`,
		`{"a":1,"\u0061":2}`:         `the name "a" appears twice`,
		`1 2`:                        "more text after the end",
		`01`:                         "more text after the end",
		`1.`:                         "not a number",
		`-`:                          "not a number",
		`.5`:                         "unexpected '.'",
		`NaN`:                        "unexpected 'N'",
		`Infinity`:                   "unexpected 'I'",
		`"a` + "\n" + `b"`:           "control character",
		`"a`:                         "not closed",
		`"\x"`:                       "unknown escape",
		`"\u12g4"`:                   "four hexadecimal digits",
		"\"ab\xffc\"":                "not valid UTF-8 (at byte 3)",
		"\"\\n\xff\"":                "not valid UTF-8 (at byte 3)",
		"\"\xed\xa0\x80\"":           "not valid UTF-8",
		"\x00":                       "unexpected '\\x00'",
		"\xef\xbb\xbf1":              "unexpected '\\ufeff'",
		strings.Repeat("[", 501):     "nested deeper than 500",
		strings.Repeat(`{"a":`, 501): "nested deeper than 500",
	} {
		_, err := expr.DecodeJSON([]byte(src))
		var bad *expr.BadJSON
		require.ErrorAs(t, err, &bad, src)
		require.ErrorContains(t, err, want, src)
	}
	_, err := expr.DecodeJSON([]byte(strings.Repeat("[", 500) + strings.Repeat("]", 500)))
	require.NoError(t, err)
	_, err = expr.DecodeJSONLimit([]byte(`"abc"`), 4)
	require.ErrorContains(t, err, "at most 4")
}

func TestCaseS36TenMegabytesOfBracketsFailFast(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"[", `{"a":`} {
		start := time.Now()
		_, err := expr.DecodeJSON(bytes.Repeat([]byte(open), 10<<20/len(open)))
		require.ErrorContains(t, err, "nested deeper")
		require.Less(t, time.Since(start), time.Second)
		require.Less(t, len(err.Error()), 500)
	}
}

func TestEncodeRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range 501 {
		deep = []any{deep}
	}
	shared := any("0123456789")
	for range 60 {
		shared = []any{shared, shared}
	}
	for want, v := range map[string]any{
		"in b: in [1]: JSON has no number for NaN": map[string]any{"a": 1, "b": []any{1, math.NaN()}},
		"no number for +Inf":                       math.Inf(1),
		"not a number as JSON writes it":           json.Number("Infinity"),
		"not a number":                             json.Number(""),
		"not valid UTF-8":                          "a\xff",
		"nested deeper":                            deep,
		"more than":                                shared,
		"cannot be written":                        struct{}{},
	} {
		_, err := expr.EncodeJSON(v)
		require.ErrorContains(t, err, want)
	}
}

func TestPlainTakesOutWhatIsNoText(t *testing.T) {
	t.Parallel()
	v, err := expr.DecodeJSON([]byte(`"a\u0000\ud800\udc00x\udfff\ud800\ud800z"`))
	require.NoError(t, err)
	require.Equal(t, "a\uFFFD\U00010000x\uFFFD\uFFFD\uFFFDz", expr.Plain(v.(string)))
	require.ErrorContains(t, expr.CheckText(v.(string)), "character 2 is NUL")
	require.ErrorContains(t, expr.CheckText("ü\xff"), "character 2 is half")
	require.NoError(t, expr.CheckText("ü\uFFFD😀"))
}

func TestCaseS31PreviewCutsAtWholeCharacters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é😀", 5000)
	for limit := range 40 {
		got := strings.TrimSuffix(expr.Preview([]byte(long), limit), "…")
		require.True(t, utf8.ValidString(got))
		require.True(t, strings.HasPrefix(long, got))
		require.LessOrEqual(t, len(got), limit)
		require.Greater(t, len(got), limit-4)
	}
	require.Equal(t, "ab", expr.Preview([]byte("ab"), 2))
	require.Equal(t, "\uFFFD\uFFFD…", expr.Preview([]byte("\xff\x00abc"), 2))
	require.Equal(t, "…", expr.Preview([]byte("abc"), -1))
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"\ud800\u0000"]}`, `[[[[`, `"\ud83d\ude00"`, `-0e-1`, "\"\xff\"", `{"a":1,"a":1}`, ` [ ] `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := expr.DecodeJSON(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("took %q, which is no JSON", data)
		}
		once, err := expr.EncodeJSON(v)
		require.NoError(t, err)
		require.True(t, json.Valid(once))
		again, err := expr.DecodeJSON(once)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(v, again))
		require.Empty(t, cmp.Diff(expected(t, string(data)), expected(t, string(once))))
		if text, err := expr.Words(v); err == nil {
			require.NoError(t, expr.CheckText(text))
		}
	})
}

func FuzzPreview(f *testing.F) {
	f.Add([]byte("é😀"), 3)
	f.Add([]byte("\xed\xa0\x80\x00"), 2)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		got := expr.Preview(data, limit)
		require.NoError(t, expr.CheckText(got))
		// One broken byte becomes U+FFFD, which has three.
		require.LessOrEqual(t, len(got), 3*max(0, min(limit, len(data)))+len("…"))
	})
}
