package tenants

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known in a container without a zone database
	"unicode"
	"unicode/utf8"
)

// Invalid says that a value a person gave cannot be taken, and how to put it right.
type Invalid struct {
	Field   string // the value's name: "email", "name", "zone", "role"
	Message string // one sentence for the person
}

// Error returns the sentence with the field's name.
func (e *Invalid) Error() string { return e.Field + ": " + e.Message }

const maxNameLength = 200 // in characters, as the tables' checks count

// cleanName takes the name of a person or a workspace. Names travel into mail
// headers, log lines and other people's pages, so line breaks and invisible
// characters, among them those that turn the direction of text, are refused.
func cleanName(text string) (string, error) {
	name := strings.TrimSpace(text)
	switch {
	case name == "":
		return "", &Invalid{"name", "Please give a name."}
	case !utf8.ValidString(name):
		return "", &Invalid{"name", "This name has characters that cannot be read. Please type it anew."}
	case utf8.RuneCountInString(name) > maxNameLength:
		return "", &Invalid{"name", fmt.Sprintf("This name is longer than %d characters. Please shorten it.", maxNameLength)}
	case strings.ContainsFunc(name, isHidden):
		return "", &Invalid{"name", "A name cannot have line breaks or invisible characters. Please type it anew."}
	}
	return name, nil
}

// isHidden tells whether a rune has no look of its own. The joiners that some scripts
// and emoji need are let through.
func isHidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if r == nonJoiner || r == joiner {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

func checkZone(zone string) error {
	if zone == "" || zone == "Local" {
		return &Invalid{"zone", "Please choose a time zone."}
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return &Invalid{"zone", fmt.Sprintf("There is no time zone %q. Please choose one from the list.", zone)}
	}
	return nil
}

// stripped makes any text fit for a text column: Postgres takes no NUL and no broken
// UTF-8, and a record must not fail because of the words in it.
func stripped(text string, maxBytes int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
	for len(text) > maxBytes {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
