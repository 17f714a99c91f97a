package mail

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"tollgate/tenants"
)

// Address is somebody's mailbox, with the name to show beside it.
type Address struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email"`
}

// Bounds of one mail.
const (
	maxName       = 100 // characters
	maxSubject    = 250 // characters
	maxRecipients = 50
)

// ParseAddresses reads a text that names one address or several apart by commas, with
// or without names. Domains of any script are written the way that mail servers read.
func ParseAddresses(written string) ([]Address, error) {
	if strings.ContainsAny(written, "\r\n\x00") {
		return nil, fmt.Errorf("%w: an address holds a line break", ErrBadMessage)
	}
	list, err := mail.ParseAddressList(written)
	if err != nil {
		return nil, fmt.Errorf("%w: “%s” is no e-mail address", ErrBadMessage, line(written, maxName))
	}
	out := make([]Address, 0, len(list))
	for _, found := range list {
		address, err := Address{Name: found.Name, Email: found.Address}.cleaned()
		if err != nil {
			return nil, err
		}
		out = append(out, address)
	}
	return out, nil
}

// cleaned checks the address and makes the name one plain line.
func (a Address) cleaned() (Address, error) {
	email, err := tenants.ParseEmail(a.Email)
	if err != nil {
		return Address{}, fmt.Errorf("%w: “%s” is no e-mail address", ErrBadMessage, line(a.Email, maxName))
	}
	return Address{Name: line(a.Name, maxName), Email: email}, nil
}

func (a Address) header() *mail.Address { return &mail.Address{Name: a.Name, Address: a.Email} }

// text makes foreign text fit for a mail: valid UTF-8, plain line ends, no control
// characters, nothing that turns the direction of what follows.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unicode.IsControl(r), r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s)
}

// line is text in one line of at most so many characters, cut where one can see it.
// Headers are made of lines only, so nothing can begin a header of its own.
func line(s string, most int) string {
	return cut(strings.Join(strings.Fields(text(s)), " "), most)
}

func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return s
}
