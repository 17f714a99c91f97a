package tenants_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestParseEmail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ana@example.com":                              "ana@example.com",
		"  Ana.Berger@Example.COM \n":                  "ana.berger@example.com",
		"ana+tag@example.com":                          "ana+tag@example.com",
		"o'neil_x-1@sub.example.co.uk":                 "o'neil_x-1@sub.example.co.uk",
		"kontakt@bücher.example":                       "kontakt@xn--bcher-kva.example",
		"a@B\u00fcCHER.example":                        "a@xn--bcher-kva.example",
		"ana@\u212Aelvin.example":                      "ana@kelvin.example", // the Kelvin sign: mail goes to the plain letter, too
		"":                                             "",
		"ana":                                          "",
		"@example.com":                                 "",
		"ana@":                                         "",
		"ana@localhost":                                "",
		"ana@example":                                  "",
		"ana@127.0.0.1":                                "",
		"ana@[127.0.0.1]":                              "",
		"ana@exa mple.com":                             "",
		"ana@example..com":                             "",
		"ana@-example.com":                             "",
		"ana@example.com.":                             "",
		"an a@example.com":                             "",
		"ana@evil.example@example.com":                 "",
		"Ana <ana@example.com>":                        "",
		`"ana b"@example.com`:                          "",
		"ana..b@example.com":                           "",
		".ana@example.com":                             "",
		"\u212Aelvin@example.com":                      "", // would fold to kelvin@
		"ana\u202e@example.com":                        "",
		"ana\x00@example.com":                          "",
		"ana\r\nBcc: x@example.com":                    "",
		"ana@example.com\r\nBcc: x@y.z":                "",
		"ana@exam\xffple.com":                          "",
		"ana,ben@example.com":                          "",
		strings.Repeat("a", 65) + "@example.com":       "",
		"a@" + strings.Repeat("a", 64) + ".example":    "",
		"a@" + strings.Repeat("abcdefgh.", 30) + "com": "",
		strings.Repeat("@", 1<<20):                     "",
	} {
		got, err := tenants.ParseEmail(text)
		require.Equal(t, want, got, "%.80q", text)
		if want == "" {
			var invalid *tenants.Invalid
			require.ErrorAs(t, err, &invalid, "%.80q", text)
			require.Equal(t, "email", invalid.Field)
		}
	}
}

// Whatever is taken is one form: plain ASCII, fit for a header, and taken again as it is.
func FuzzParseEmail(f *testing.F) {
	for _, seed := range []string{"ana@example.com", "A@B\u00fc.example", "a@\u212Ab.c", "a@xn--a.b", "x@1.2.3", "a\r\n@b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		email, err := tenants.ParseEmail(text)
		if err != nil {
			require.Empty(t, email)
			return
		}
		require.Equal(t, strings.ToLower(email), email)
		require.Equal(t, 1, strings.Count(email, "@"))
		require.LessOrEqual(t, len(email), 254)
		require.False(t, strings.ContainsFunc(email, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>()[]\,;:"`, r) }), "%q", email)
		again, err := tenants.ParseEmail(email)
		require.NoError(t, err)
		require.Equal(t, email, again)
	})
}
