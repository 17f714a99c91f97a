package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPagesOfOursFollowASignIn(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/ok?u=//x":         "/ok?u=//x",
		"/w/1/runs?state=a": "/w/1/runs?state=a",
		"/w/1/r%20s":        "/w/1/r%20s",
		"/":                 "/",
		"/ok#part":          "/ok",

		"":                                 "",
		"ok":                               "",
		"//evil.example":                   "",
		"///evil.example":                  "",
		`/\evil.example`:                   "",
		`\/evil.example`:                   "",
		`/\/evil.example`:                  "",
		"/%5Cevil.example":                 "",
		"/%5cevil.example":                 "",
		"/%2F/evil.example":                "",
		"/%2f%2fevil.example":              "",
		"https:evil.example":               "",
		"https://evil.example":             "",
		"http:///evil.example":             "",
		"javascript:alert(1)":              "",
		"/\t/evil.example":                 "",
		"/%09/evil.example":                "",
		"\t//evil.example":                 "",
		" //evil.example":                  "",
		"/\n/evil.example":                 "",
		"/x\r\nLocation: //e":              "",
		"/./../evil.example":               "",
		"/..//evil.example":                "",
		"/%2e%2e//evil.example":            "",
		"/%zz":                             "",
		"/signin":                          "",
		"/signin/code":                     "",
		"/signout":                         "",
		"/" + strings.Repeat("a", maxNext): "",
	} {
		require.Equal(t, want, safeNext(next), "%q", next)
	}
}

func FuzzSafeNext(f *testing.F) {
	for _, seed := range []string{"/ok", "//e", `/\e`, "/%5Ce", "https:e", "/a/../b", "/\x00", "/?//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		safe := safeNext(next)
		if safe == "" {
			return
		}
		path, _, _ := strings.Cut(safe, "?")
		require.True(t, strings.HasPrefix(safe, "/") && !strings.HasPrefix(safe, "//"))
		require.NotContains(t, path, `\`)
		require.False(t, hasControls(safe))
	})
}
