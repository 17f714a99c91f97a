package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/static"
	"tollgate/tenants"
)

// Programs that look through mail open every link of every mail. None of that may
// decide, or use a link up.
func TestLookingAtLinksChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	document := refundDocument(outsider, pipeline.Person{Role: string(tenants.Reviewer)})
	document.Steps[1].With.(*pipeline.Review).Policy = pipeline.Policy{Rule: pipeline.PolicyAll}
	id := s.publish(s.home, document)
	for _, topic := range []string{"€1.00", "€2.00"} {
		s.start(s.home, id, map[string]string{"topic": topic})
	}
	s.work()
	links := s.mailedLinks()
	require.Len(t, links, 4*3, "each mail links to its page, and with each choice marked")
	s.web.paces = newPace(1, 1<<40) // tests are faster than people
	before := s.everything("public.sessions")
	for _, link := range links {
		keeps := s.visitor()
		for i := range 50 {
			b := keeps
			if i%2 == 0 {
				b = s.visitor()
			}
			b.get(link).is(http.StatusOK).says("Your decision")
			require.Equal(t, http.StatusOK, b.do(b.request(http.MethodHead, link, nil)).status)
		}
	}
	require.Equal(t, before, s.everything("public.sessions"))
	for _, link := range links {
		if strings.HasSuffix(link, "?choice=approve") {
			s.visitor().get(link).answer().is(http.StatusSeeOther)
		}
	}
}

// mailedLinks are all addresses in all mails.
func (s *site) mailedLinks() []string {
	s.t.Helper()
	var links []string
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		mails, err := s.outbox.List(ctx, tx)
		require.NoError(s.t, err)
		for _, one := range mails {
			_, composed, err := s.outbox.ByID(ctx, tx, one.ID)
			require.NoError(s.t, err)
			for _, found := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(composed.HTML, -1) {
				links = append(links, strings.TrimPrefix(found[1], siteURL))
			}
		}
		return nil
	})
	return links
}

// Even with the pace of a scanner nothing happens but that it is told to wait.
func TestLinksAreTriedAtAPace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, _ := s.asked(askingDocument("Press"), "the shop")
	s.web.paces = newPace(time.Hour, 3)
	b := s.visitor()
	for range 3 {
		b.get("/r/guess").is(http.StatusNotFound).says("We cannot open this link")
	}
	p := b.get(link).is(http.StatusTooManyRequests).says("Too many tries", "again in").hides("the shop")
	require.NotEmpty(t, p.header.Get("Retry-After"))
}

func TestEveryBadLinkLooksTheSame(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	reference := regexp.MustCompile(`Request [a-z2-7]{10}`)
	want := reference.ReplaceAllString(s.visitor().get("/r/x").is(http.StatusNotFound).text(), "")
	require.Contains(t, want, "We cannot open this link")
	altered := "A"
	if strings.HasSuffix(link, "A") {
		altered = "B"
	}
	newer := "/r/" + s.secret.SeatToken(detail.Seats[0].ID, 2)
	for _, bad := range []string{link[:len(link)-1], link + "x", link[:len(link)-1] + altered, newer, "/r/" + strings.Repeat("A", 5000), "/r/%00", "/r/%ff%fe"} {
		for _, b := range []*browser{s.visitor(), s.in(tenants.Owner)} {
			require.Equal(t, want, reference.ReplaceAllString(b.get(bad).is(http.StatusNotFound).text(), ""), bad)
			require.Equal(t, want, reference.ReplaceAllString(b.post(bad, "choice", "approve").is(http.StatusNotFound).text(), ""), bad)
		}
	}
}

// The page behind a link is small, loads nothing but our own style and icons, and tells
// nobody where it was.
func TestTheLinkPageIsLightAndQuiet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(strings.Repeat(draftReply, 20)))
	link, _ := s.asked(refundDocument(outsider), hostile)
	b := s.visitor()
	r := b.request(http.MethodGet, link, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	packed := b.do(r).is(http.StatusOK)
	require.Equal(t, "gzip", packed.header.Get("Content-Encoding"))
	weight := len(packed.body) + static.PackedSize("app.css") + static.PackedSize("icons.svg") + static.PackedSize("favicon.svg")
	require.LessOrEqual(t, weight, 40<<10)
	t.Logf("the page weighs %d bytes: %d, style %d, icons %d", weight, len(packed.body), static.PackedSize("app.css"), static.PackedSize("icons.svg"))

	p := b.get(link)
	require.Empty(t, p.all("script", "", ""))
	require.Empty(t, p.all("img", "", ""))
	require.Empty(t, p.all("iframe", "", ""))
	require.Empty(t, p.all("style", "", ""))
	for _, node := range p.all("link", "", "") {
		require.True(t, strings.HasPrefix(attr(node, "href"), "/static/"), attr(node, "href"))
	}
	require.Equal(t, "no-store", p.header.Get("Cache-Control"))
	require.Equal(t, "no-referrer", p.header.Get("Referrer-Policy"))
	require.NotContains(t, s.log.String(), strings.TrimPrefix(link, "/r/"), "a link never reaches the log")
}

// Text from outside stays text, wherever it stands.
func TestHostileTextIsInert(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	script := "</textarea></p><script>alert(1)</script><a href=javascript:alert(1)>x</a>\u202e\x01 https://evil.example"
	s.calls.say(drafted(script))
	document := refundDocument(outsider)
	ask := document.Steps[1].With.(*pipeline.Review)
	ask.Labels = pipeline.Labels{Approve: hostile, Reject: hostile}
	ask.Consequences = pipeline.Consequences{Approve: script, Reject: script, Silence: script}
	link, _ := s.asked(document, script)
	b := s.visitor()
	safe := func(p *page) *page {
		require.Empty(t, p.all("script", "", ""))
		require.Empty(t, p.all("img", "", ""))
		for _, node := range p.all("a", "", "") {
			require.NotContains(t, attr(node, "href"), "evil")
			require.False(t, strings.HasPrefix(attr(node, "href"), "javascript"), attr(node, "href"))
		}
		return p.says("<script>alert(1)</script>", "https://evil.example")
	}
	safe(b.get(link).is(http.StatusOK))
	safe(b.get(link).answer("choice", "reject").is(http.StatusUnprocessableEntity))
	safe(b.get(link).answer("show", "changes", "edit.reply", script+" more").is(http.StatusOK))
	b.get(link).answer("choice", "approve", "comment", script, "edit.reply", script+" more").leadsTo(link)
	safe(b.get(link).is(http.StatusOK)).says("You approved this with 1 change")
}

// Whoever posts without the cookie of the page decides nothing, and whoever was kept
// from sending it is told how to go on.
func TestADecisionNeedsTheCookieOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	other, _ := s.asked(askingDocument("Post"), "the shop")
	person, scanner := s.visitor(), s.visitor()
	form := person.get(link).form("answer")
	otherKey := person.get(other).form("answer").Get("key")
	for name, key := range map[string]string{"none": "", "made up": "x", "of another browser": form.Get("key")} {
		scanner.cookies = map[string]*http.Cookie{}
		scanner.post(link, "choice", "approve", "digest", form.Get("digest"), "key", key).is(http.StatusForbidden).
			says("Nothing is decided yet", "Press the button once more", "cookies")
		require.True(t, s.reviewNow(s.home, detail.ID).Open(), name)
	}
	person.post(link, "choice", "approve", "digest", form.Get("digest"), "key", otherKey).is(http.StatusForbidden)
	require.True(t, s.reviewNow(s.home, detail.ID).Open())

	// A person whose cookie got lost presses once more; what she typed is still there.
	person.cookies = map[string]*http.Cookie{}
	again := person.post(link, "choice", "reject", "comment", "Not now.", "digest", form.Get("digest"), "key", form.Get("key")).is(http.StatusForbidden)
	require.Equal(t, "Not now.", again.form("answer").Get("comment"))
	again.answer().leadsTo(link)
	person.get(link).is(http.StatusOK).says("You rejected this", "Not now.")
}

// What is no form, too large, or not text is a clear refusal that decides nothing.
func TestBrokenAnswersAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	link, detail := s.asked(refundDocument(outsider), "€420.00")
	b := s.visitor()
	form := b.get(link).form("answer")
	send := func(body string) *page {
		r := b.request(http.MethodPost, link, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return b.do(r)
	}
	send("choice=%zz").is(http.StatusBadRequest)
	send("comment=" + strings.Repeat("a", 2<<20)).is(http.StatusRequestEntityTooLarge)
	b.get(link).answer("choice", "maybe").is(http.StatusUnprocessableEntity).says("Choose one of the answers")
	b.get(link).answer("choice", "reject", "comment", strings.Repeat("a", 5001)).is(http.StatusUnprocessableEntity).says("Shorten the comment")
	b.get(link).answer("choice", "approve", "edit.reply", "a\x00b").is(http.StatusUnprocessableEntity).says("not text")
	b.get(link).answer("choice", "approve", "edit.reply", "\xff").is(http.StatusUnprocessableEntity).says("not text")
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
	send("choice=reject&comment=%00%ff%1b%5BOK&digest=" + form.Get("digest") + "&key=" + form.Get("key") + "&edit.none=1&choice=approve").leadsTo(link)
	require.Equal(t, "\uFFFD\uFFFD[OK", s.reviewNow(s.home, detail.ID).Answers[0].Comment)
}

// By plain http a page without a referrer sends neither where it comes from nor its
// origin. Such a person can decide; another site's form cannot.
func TestDecidingByPlainHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	b := s.visitor()
	form := b.get(link).form("answer")
	form.Set("choice", "approve")
	send := func(b *browser, origin string, form url.Values) *page {
		r := b.request(http.MethodPost, link, strings.NewReader(form.Encode()))
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		return b.do(r)
	}
	send(b, "https://evil.example", form).is(http.StatusForbidden)
	send(b, "null", url.Values{"choice": {"approve"}, "digest": form["digest"]}).is(http.StatusForbidden)
	send(s.visitor(), "null", form).is(http.StatusForbidden)
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
	send(b, "null", form).leadsTo(link)
}

// A choice in the address marks a radio button and nothing more.
func TestAChoiceInTheAddressDecidesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	b := s.visitor()
	require.Equal(t, "reject", b.get(link+"?choice=reject").form("answer").Get("choice"))
	require.Empty(t, b.get(link).form("answer").Get("choice"))
	require.Empty(t, b.get(link+"?choice=%3Cscript%3E").form("answer").Get("choice"))
	form := b.get(link).form("answer")
	b.post(link+"?choice=approve", "digest", form.Get("digest"), "key", form.Get("key")).is(http.StatusUnprocessableEntity).says("Choose one of the answers")
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
}

// However often the button is pressed at once, there is one decision and everybody is
// told that it went through.
func TestPressingTwiceIsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	b := s.visitor()
	form := b.get(link).form("answer")
	cookies := b.cookies
	var all sync.WaitGroup
	pages := make([]*page, 6)
	for i := range pages {
		all.Go(func() {
			tab := s.visitor()
			for name, cookie := range cookies {
				tab.cookies[name] = cookie
			}
			pages[i] = tab.post(link, "choice", "approve", "digest", form.Get("digest"), "key", form.Get("key"), "comment", "Go.")
		})
	}
	all.Wait()
	for _, p := range pages {
		p.leadsTo(link)
		p.follow().is(http.StatusOK).says("You approved this")
	}
	now := s.reviewNow(s.home, detail.ID)
	require.Len(t, now.Answers, 1)
	require.Len(t, s.recorded(detail.ID), 1)

	// Later the same answer is still a success, and another one is refused.
	b.post(link, "choice", "approve", "digest", form.Get("digest"), "key", form.Get("key"), "comment", "Go.").leadsTo(link)
	b.post(link, "choice", "reject", "digest", form.Get("digest"), "key", form.Get("key"), "comment", "Stop!").is(http.StatusConflict).
		says("Your answer was not taken", "You approved this").hides("Stop!")
	require.Equal(t, now.Answers, s.reviewNow(s.home, detail.ID).Answers)
	require.Len(t, s.recorded(detail.ID), 1)
}

func TestAnAnswerToSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	link, detail := s.asked(refundDocument(outsider), "€420.00")
	b := s.visitor()
	for _, digest := range []string{"", "no digest", strings.Repeat("00", 32)} {
		p := b.get(link).answer("digest", digest, "choice", "approve", "comment", "My comment.", "edit.reply", "My text.").is(http.StatusConflict).
			says("This changed since you opened it", "Nothing is decided")
		again := p.form("answer")
		require.Equal(t, []string{"My comment.", "My text.", "approve"}, []string{again.Get("comment"), again.Get("edit.reply"), again.Get("choice")})
		require.True(t, s.reviewNow(s.home, detail.ID).Open())
	}
	b.get(link).answer("choice", "approve").leadsTo(link)
}

// What became of a review is told to whoever comes later, by looking and by answering.
func TestLateComersAreToldWhatHappened(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(drafted(draftReply))
	late := func(people []pipeline.Person, end func(link string, d review.Detail), n int) (*browser, string, *page) {
		link, detail := s.asked(refundDocument(people...), "€420.00")
		mine := "/r/" + s.secret.SeatToken(detail.Seats[n].ID, 1)
		b := s.visitor()
		opened := b.get(mine).is(http.StatusOK)
		end(link, detail)
		return b, mine, opened
	}
	two := []pipeline.Person{outsider, {Email: "second@example.org"}}
	cases := map[string]struct {
		n     int
		end   func(link string, d review.Detail)
		says  []string
		hides []string
	}{
		"decided by others": {1, func(link string, _ review.Detail) { s.decided(link, "choice", "approve") },
			[]string{"Already decided", "Somebody else who was asked approved it", "The money is paid today"}, []string{"woelfing"}},
		"expired": {0, func(_ string, d review.Detail) { s.overdue(d.ID) },
			[]string{"The deadline passed", "Nobody decided in time", "the case goes to the service team, unanswered"}, nil},
		"cancelled": {0, func(_ string, d review.Detail) {
			s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
				return s.engine.Cancel(ctx, tx, d.RunID, "Ben Okonkwo")
			})
			s.work()
		}, []string{"No decision needed", "The run was stopped"}, []string{"Ben Okonkwo"}},
	}
	for name, c := range cases {
		b, link, opened := late(two, c.end, c.n)
		b.get(link).is(http.StatusOK).says(c.says...).hides(c.hides...)
		opened.answer("choice", "approve").is(http.StatusConflict).says(c.says...).says("not taken").hides(c.hides...)
		require.Empty(t, b.get(link).all("form", "", ""), name)
	}
}

// Members may know who decided.
func TestMembersLearnWhoDecided(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(func() pipeline.Document {
		document := askingDocument("Press")
		document.Steps[0].With.(*pipeline.Review).People = []pipeline.Person{{Role: string(tenants.Reviewer)}, {Role: string(tenants.Admin)}}
		return document
	}(), "the shop")
	s.decided(link, "choice", "reject", "comment", "No.")
	admin := s.home.people[tenants.Admin].User
	seat, ok := detail.SeatOf(admin.ID)
	require.True(t, ok)
	s.as(admin.ID).get("/r/"+s.secret.SeatToken(seat.ID, 1)).is(http.StatusOK).says("Already decided", detail.Seats[0].Name, "rejected it")
}

func TestSignInWhereTheReviewAsksForIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askingDocument("Press")
	document.Steps[0].With.(*pipeline.Review).Proof = pipeline.ProofSignIn
	link, detail := s.asked(document, "the shop")
	b := s.visitor()
	p := b.get(link).is(http.StatusForbidden).says("Sign in to see this request", "Sent to r…@example.com").hides("the shop", detail.Seats[0].Address)
	inside := s.at("reviews", detail.ID.String())
	require.Equal(t, signInThen(inside), attr(p.byTestID("sign-in"), "href"))
	b.post(link, "choice", "approve").is(http.StatusForbidden).hides("the shop")
	require.True(t, s.reviewNow(s.home, detail.ID).Open())

	s.in(tenants.Reviewer).get(inside).answer("choice", "approve").leadsTo(inside)
	entries := s.recorded(detail.ID)
	require.Len(t, entries, 1)
	require.Equal(t, tenants.ByMember(s.home.people[tenants.Reviewer]), entries[0].Actor)
	require.Equal(t, "sign_in", entries[0].Detail["proof"])
}

// Who holds a link is never taken for more than that, whoever is signed in.
func TestAnAnswerByLinkClaimsNoMore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	elsewhere := s.workspace("Other house")
	for _, b := range []*browser{s.visitor(), s.as(elsewhere.people[tenants.Owner].User.ID), s.in(tenants.Viewer)} {
		link, detail := s.asked(askingDocument("Press"), "the shop")
		b.get(link).answer("choice", "approve").leadsTo(link)
		entries := s.recorded(detail.ID)
		require.Len(t, entries, 1)
		require.Equal(t, tenants.ByLink(detail.Seats[0].ID, detail.Seats[0].Address), entries[0].Actor)
		require.Equal(t, "link", entries[0].Detail["proof"])
		b.get(link).says("By the link that was sent to r…@example.com").hides(detail.Seats[0].Address)
	}
}

// Who started a run may not decide its review, by no way.
func TestTheRequesterCannotDecide(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	b := s.in(tenants.Builder) // who starts the runs of these tests
	b.get(link).is(http.StatusForbidden).says("Somebody else must decide this", "you started this run")
	page := s.at("reviews", detail.ID.String())
	seen := b.get(page).is(http.StatusOK).says("Somebody else must decide this", "You started the run", detail.Seats[0].Name, "the shop")
	require.Empty(t, seen.all("input", "type", "radio"))
	form := s.visitor().get(link).form("answer")
	b.post(page, "choice", "approve", "digest", form.Get("digest")).is(http.StatusForbidden).says("Somebody else must decide this")

	// With the key of her own browser she gets as far as the judge.
	person := s.visitor()
	form = person.get(link).form("answer")
	for name, cookie := range person.cookies {
		b.cookies[name] = cookie
	}
	b.post(link, "choice", "approve", "digest", form.Get("digest"), "key", form.Get("key")).is(http.StatusForbidden)
	require.True(t, s.reviewNow(s.home, detail.ID).Open())
}

// A link that is too old is renewed by mail, and only there.
func TestALinkThatIsTooOldIsRenewedByMail(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	link, detail := s.asked(askingDocument("Press"), "the shop")
	seat := detail.Seats[0].ID
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE seats SET expires_at = now() WHERE tenant_id = $1 AND id = $2`, tx.Tenant, seat)
		return err
	})
	b := s.visitor()
	old := b.get(link).is(http.StatusGone).says("This link is too old").hides("the shop")
	s.visitor().post(link+"/renew", "key", old.field("key")).is(http.StatusGone)
	b.get("/r/" + s.secret.SeatToken(seat, 2)).is(http.StatusNotFound)
	b.post(link+"/renew", "key", old.field("key")).is(http.StatusOK).says("A new link is on its way", "r…@example.com").hides(s.secret.SeatToken(seat, 2))
	b.get(link).is(http.StatusNotFound)
	b.get("/r/" + s.secret.SeatToken(seat, 2)).is(http.StatusOK).says("the shop")
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		mails, err := s.outbox.List(ctx, tx)
		require.NoError(t, err)
		require.Len(t, mails, 2)
		require.Equal(t, mail.StateSent, mails[0].State)
		return nil
	})
}

// Yes and no lead a run different ways, through to its end.
func TestApproveAndRejectGoDifferentWays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := askingDocument("Press")
	note := func(id, text string) pipeline.Step {
		return pipeline.Step{ID: id, Name: id, Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "said", Formula: `"` + text + `"`}}}}
	}
	document.Steps = append(document.Steps, pipeline.Step{ID: "way", Name: "Which way", Kind: pipeline.KindBranch, With: &pipeline.Branch{
		Cases:     []pipeline.Case{{ID: "yes", Name: "Yes", When: `steps.ask.verdict == "approved"`, Steps: []pipeline.Step{note("published", "out")}}},
		Otherwise: []pipeline.Step{note("kept", "in")},
	}})
	for choice, want := range map[string]string{"approve": "published", "reject": "kept"} {
		link, detail := s.asked(document, "the shop")
		s.decided(link, "choice", choice, "comment", "Because.")
		steps := map[string]bool{}
		state := ""
		s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
			progress, err := engine.ProgressOf(ctx, tx, detail.RunID)
			for _, step := range progress.Steps {
				steps[step.StepID] = true
			}
			state = string(progress.Run.State)
			return err
		})
		require.Equal(t, "completed", state)
		require.Equal(t, map[string]bool{"ask": true, "way": true, want: true}, steps, fmt.Sprintf("after %s", choice))
	}
}
