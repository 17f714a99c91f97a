package outbound

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// rules are what a URL is judged by before anything is dialled.
type rules struct {
	allow     map[string]bool
	plainHTTP bool
	redirects int
}

// checkRequest judges one hop's URL.
func (r rules) checkRequest(req *http.Request) *Error {
	u := req.URL
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return badAddress("Only addresses that begin with https:// can be called.")
	case host == "" || u.Opaque != "":
		return badAddress("The address names no host.")
	case u.User != nil:
		return badAddress("Name and password cannot be part of the address. Use a header with a secret.")
	case req.Host != "" && !strings.EqualFold(req.Host, u.Host):
		return badAddress("The Host header cannot be set to another host.")
	case r.allow[key(u)]:
		return nil
	case u.Scheme == "http" && !r.plainHTTP:
		return badAddress("Only addresses that begin with https:// can be called.")
	case port(u) != schemePort(u.Scheme):
		return badAddress("Port " + port(u) + " cannot be called; only the usual port of https is open.")
	}
	return checkHost(host)
}

// checkHost refuses what can be told from the host alone. The dialer would refuse
// it as well; this gives the clearer sentence, and keeps number-like names such as
// 0x7f000001 away from resolvers that read them as addresses.
func checkHost(host string) *Error {
	addr, err := netip.ParseAddr(host)
	if err == nil {
		if !Public(addr) {
			return badAddress("The address " + host + " is private or reserved and cannot be called.")
		}
		return nil
	}
	name := strings.TrimSuffix(host, ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Contains(host, ":") || numeric(last) {
		return badAddress("The host is neither a name nor an address in the usual form.")
	}
	return nil
}

// numeric tells whether a label reads as a number, decimal, octal or hexadecimal.
func numeric(label string) bool {
	if label == "" {
		return true
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func badAddress(message string) *Error {
	return &Error{Kind: KindBadAddress, Message: message}
}

// checkRedirect judges whether a redirect is followed at all, and cleans the
// request that follows it. Its URL is judged like any other by the guard.
func (r rules) checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	switch {
	case r.redirects == 0:
		return redirectFault("The other side redirects to another address, which is not followed here.")
	case len(via) > r.redirects:
		return redirectFault(fmt.Sprintf("The other side redirects more than %d times.", r.redirects))
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return redirectFault("The other side redirects a request that sends data, which is not followed.")
	case last.URL.Scheme == "https" && req.URL.Scheme != "https":
		return redirectFault("The other side redirects from https to an unprotected address, which is not followed.")
	case r.allow[key(req.URL)] && key(req.URL) != key(first.URL):
		// Else any public server could reach the operator's private hosts through us.
		return redirectFault("The other side redirects to an address that is not allowed.")
	}
	req.Header.Del("Referer")
	if key(req.URL) != key(first.URL) || req.URL.Scheme != first.URL.Scheme {
		keepHeaders(req.Header)
	}
	return nil
}

// keepHeaders removes everything that may be a secret meant for the first host.
// net/http removes only the headers it knows, and keys travel in others too.
func keepHeaders(header http.Header) {
	for name := range header {
		switch name {
		case "Accept", "Accept-Language", "User-Agent":
		default:
			header.Del(name)
		}
	}
}

func redirectFault(message string) *Error {
	return &Error{Kind: KindRedirect, Sent: true, Message: message}
}

func key(u *url.URL) string { return hostPort(u.Hostname(), port(u)) }

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err == nil {
			return strconv.Itoa(n) // 0443 is 443
		}
		return p
	}
	return schemePort(u.Scheme)
}

func schemePort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// Authority is the host:port of a URL, as Config.Allow writes it.
func Authority(u *url.URL) string { return net.JoinHostPort(u.Hostname(), port(u)) }
