package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
)

// A link can be opened by anybody who sees the mail, and by programs that look through
// mail. A decision therefore also needs a cookie that the page set, and a key in the
// form that belongs to this cookie and this link. Whoever just posts to the address of
// a link decides nothing, and neither does a form that another site made up: it cannot
// know the key. Nothing is stored, so opening a link still changes nothing.

// linkCookie is the name of the cookie. It is one for all links, so that several can
// stand open in one browser.
func (s *Server) linkCookie() string {
	if s.Secure {
		return "__Host-tollgate-link"
	}
	return "tollgate-link"
}

// linkKey is the key for the form of a link, under the browser's cookie; the browser
// gets one if it has none.
func (v *visit) linkKey(token string) string {
	name := v.s.linkCookie()
	cookie, err := v.Cookie(name)
	if err != nil || len(cookie.Value) != len(newFormKey()) {
		// Lax, since the link is followed from a mail on another site.
		cookie = &http.Cookie{Name: name, Value: newFormKey(), Path: "/", HttpOnly: true, Secure: v.s.Secure, SameSite: http.SameSiteLaxMode}
		v.SetCookie(cookie)
	}
	return v.s.keyOf(cookie.Value, token)
}

// holdsKey tells whether a form came with the key of this browser and this link.
func (v *visit) holdsKey(token, key string) bool {
	cookie, err := v.Cookie(v.s.linkCookie())
	if err != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(key), []byte(v.s.keyOf(cookie.Value, token))) == 1
}

func (s *Server) keyOf(cookie, token string) string {
	sum := sha256.Sum256([]byte(cookie + " " + token))
	key := s.Secret.Derive("review form", [16]byte(sum[:16]), 0)
	return base64.RawURLEncoding.EncodeToString(key[:])
}
