package web

import (
	"net/url"
	"strings"
)

const maxNext = 2048

// safeNext returns the page to go on to after signing in, or "" for anything that is not
// plainly a page of ours. Browsers read "\" as "/" and skip tabs, and what begins with
// two slashes is another host, so both the address as written and what it decodes to
// are looked at.
func safeNext(next string) string {
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || hasControls(next) {
		return ""
	}
	parsed, err := url.Parse(next)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.User != nil {
		return ""
	}
	if strings.Contains(next, `\`) || strings.ContainsAny(parsed.Path, `\`) || hasControls(parsed.Path) {
		return ""
	}
	if strings.Contains(parsed.Path, "//") || strings.Contains(parsed.Path, "/.") {
		return ""
	}
	for _, door := range []string{"/signin", "/signout"} {
		if parsed.Path == door || strings.HasPrefix(parsed.Path, door+"/") {
			return ""
		}
	}
	return parsed.RequestURI()
}

func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
