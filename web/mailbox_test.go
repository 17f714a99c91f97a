package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestTheMailboxShowsWhatWouldHaveGoneOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	elsewhere := things(s, s.home)
	s.seedDemo()
	b := s.visitor()
	b.get("/mail").is(200).says("No mail yet")
	ours := things(s, s.home)
	s.visitor().post("/signin", "email", "me@example.com")
	s.work()
	p := b.get("/mail").is(200).says("2 mails", "Shall we publish secret topic", "Chi Nguyen", "Your code to sign in", "me@example.com", "Kept here")
	require.Len(t, p.all("a", "href", "/mail/"+ours["id"]), 1)
	mail := b.get("/mail/"+ours["id"]).is(200).says("Nordlicht Handel reviews", "chi.nguyen@nordlicht.example", "Message-ID")
	require.Equal(t, "/r/"+ours["token"], attr(mail.byTestID("mail-link"), "href"), "the link works here")
	// Mail of a workspace that one is not in is not there, until one signs in.
	b.get("/mail/" + elsewhere["id"]).is(http.StatusNotFound)
	for _, id := range []string{"nonsense", tenants.NewID[int]().String()} {
		b.get("/mail/" + id).is(http.StatusNotFound)
	}
}

func TestOnesOwnMailIsInTheMailbox(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	ours := things(s, s.home)
	b := s.in(tenants.Owner)
	b.get("/mail").is(200).says("1 mail", "secret topic")
	b.get("/mail/" + ours["id"]).is(200)
}

// The whole way in of local mode: the code is in the mailbox.
func TestACodeFromTheMailboxSignsIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	b := s.visitor()
	b.post("/signin", "email", "me@example.com").leadsTo("/signin/code").follow().says("mailbox")
	s.work()
	list := b.get("/mail").is(200)
	var path string
	for _, link := range list.all("a", "", "") {
		if href := attr(link, "href"); strings.HasPrefix(href, "/mail/") {
			path = href
		}
	}
	mail := b.get(path).is(200).says("Type the code", s.codeFor("me@example.com"))
	require.Empty(t, mail.all("", "data-testid", "mail-link"))
	b.post("/signin/code", "code", s.codeFor("me@example.com")).leadsTo("/")
}

// A mail's text can hold anything; only addresses of ours become links.
func TestHostileMailIsText(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	text := "Go to https://evil.example/r/x or http://127.0.0.1:8080@evil.example/r/y or http://127.0.0.1:8080/r/abc, " +
		"http://127.0.0.1:8080.evil.example/r/z and http://127.0.0.1:8080/r/abc"
	require.Equal(t, []string{"/r/abc"}, s.web.linksIn(text))
	s.seedDemo()
	id := s.publish(s.home, askingDocument("Hostile"))
	s.start(s.home, id, map[string]string{"topic": hostile + " https://evil.example"})
	s.work()
	p := s.visitor().get("/mail").is(200).says(hostile)
	require.Empty(t, p.all("img", "", ""))
	for _, link := range p.all("a", "", "") {
		if href := attr(link, "href"); strings.HasPrefix(href, "/mail/") {
			mail := s.visitor().get(href).is(200).says(hostile)
			require.Empty(t, mail.all("img", "", ""))
			require.Empty(t, mail.all("a", "href", "https://evil.example"))
		}
	}
}
