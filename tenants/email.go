package tenants

import (
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	maxEmailLength = 254 // what an SMTP path can carry
	maxLocalLength = 64
	maxTypedEmail  = 1 << 10 // in bytes, before the domain is shortened to its ASCII form
)

// ParseEmail takes an address as people type it and returns the one form that is
// stored, compared and sent to: lower case, the domain in its ASCII form. Tags (a+b@)
// are kept, they are addresses of their own. A local part outside ASCII is refused
// before lower-casing, since some foreign letters fold into ASCII ones and would let
// one address pass for another. The error is an *Invalid.
func ParseEmail(text string) (string, error) {
	email := strings.TrimSpace(text)
	at := strings.LastIndexByte(email, '@')
	if at < 1 || at == len(email)-1 || len(email) > maxTypedEmail || !utf8.ValidString(email) {
		return "", &Invalid{"email", "Please give a whole e-mail address, such as ana@example.com."}
	}
	local, domain := email[:at], email[at+1:]
	if !isLocalPart(local) {
		return "", &Invalid{"email", "The part before the @ can have letters from a to z, digits and . _ - + only."}
	}
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !isDomain(domain) {
		return "", &Invalid{"email", "The part after the @ is not a mail domain. Please check it for typing errors."}
	}
	email = strings.ToLower(local) + "@" + domain
	if len(email) > maxEmailLength {
		return "", &Invalid{"email", "This address is too long to be real. Please check it."}
	}
	return email, nil
}

func isLocalPart(local string) bool {
	if len(local) > maxLocalLength || strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return false
	}
	return !strings.ContainsFunc(local, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", r)
	})
}

// isDomain wants a name of two or more labels that is no IP address; idna has already
// bounded the labels and refused foreign characters.
func isDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	if len(labels) < 2 || strings.ContainsFunc(domain, func(r rune) bool { return !isAlphanumeric(r) && r != '.' && r != '-' }) {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	_, err := netip.ParseAddr(domain)
	return err != nil && domain == strings.ToLower(domain)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// nameFromEmail is what a person is called until she says so herself:
// ana.berger+x@example.com is Ana Berger.
func nameFromEmail(email string) string {
	local, _, _ := strings.Cut(email, "@")
	local, _, _ = strings.Cut(local, "+")
	words := strings.FieldsFunc(local, func(r rune) bool { return !isAlphanumeric(r) })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	if len(words) == 0 {
		return email
	}
	return strings.Join(words, " ")
}
