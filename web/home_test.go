package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

func TestTheFirstDayOffersOneThingToRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.in(tenants.Builder).get(s.at()).is(200).says("Nothing runs yet. See one work first.", "costs pretend dollars", "Nothing to review", "No run yet")
	require.Len(t, p.all("button", "class", "button primary"), 1, "one primary button")
	form := p.byTestID("run-example").Parent
	require.NotEmpty(t, attr(form, "action"))
	// Who may not run is offered a look instead.
	viewer := s.in(tenants.Viewer).get(s.at()).is(200).says("Nothing runs yet.", "Only an owner, an admin or a builder can start and change runs. Ask Admin").hides("run-example")
	require.Empty(t, viewer.all("form", "method", "post")[1:], "but for signing out, nothing to send")
}

func TestHomeTellsTheNewsFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	asks, fails := s.publish(s.home, askingDocument("Sign-off")), s.publish(s.home, failingDocument("Word count"))
	for range homeLines + 2 {
		s.start(s.home, asks, map[string]string{"topic": "the catalogue"})
	}
	s.start(s.home, fails, map[string]string{"topic": "x"})
	s.work()
	p := s.in(tenants.Reviewer).get(s.at()).is(200)
	require.Equal(t, "Six decisions wait for you. One run failed in the last 7 days.", p.heading())
	p.says("six runs wait for people", "All 6 reviews", "Shall we publish the catalogue?", "no deadline", "Word count #1", "divides by zero", "2 more runs")
	require.Len(t, p.all("a", "href", s.at("reviews")), 2, "in the navigation and beside the list")
	p.hides("AI spend", "Pretend dollars")
	p = s.in(tenants.Builder).get(s.at()).is(200).says("One run failed in the last 7 days.", "Nothing to review", "Start a run")
	require.Equal(t, "One run failed in the last 7 days.", p.heading())
}

func TestHomeShowsSpendAgainstTheCap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "x"})
	s.work()
	place := ledger.OfTenant(s.home.ID)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		limit := 50 * ledger.Dollar
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: place, Funds: ledger.Pretend, Limit: &limit})
	})
	p := s.in(tenants.Finance).get(s.at()).is(200).says("AI spend, ", "$0.00 spent, no cap is set", "Pretend dollars, ", "$0.00 of $50.00", "$50.00 is left; no call starts that could pass the cap")
	require.Len(t, p.all("svg", "role", "img"), 1, "a bar for the one cap")
	for _, blind := range []tenants.Role{tenants.Reviewer, tenants.Viewer} {
		s.in(blind).get(s.at()).is(200).hides("$50.00", "AI spend")
	}
}

func TestSpendWords(t *testing.T) {
	t.Parallel()
	limit := 10 * ledger.Dollar
	for words, standing := range map[string]ledger.Standing{
		"":                                     {Spent: 5},
		"$2.00 is reserved for running work. ": {Held: 2 * ledger.Dollar},
		"$1.00 came on top of what was reserved. ":                                                   {Overrun: ledger.Dollar},
		"$7.00 is left; no call starts that could pass the cap.":                                     {Limit: &limit, Spent: 3 * ledger.Dollar},
		"$1.00 is reserved for running work. $0.00 is left; no call starts that could pass the cap.": {Limit: &limit, Spent: 12 * ledger.Dollar, Held: ledger.Dollar},
	} {
		require.Equal(t, words, restOf(standing))
	}
}

func TestHomeTitles(t *testing.T) {
	t.Parallel()
	for title, counts := range map[string]engine.Counts{
		"All is done. Nothing waits for you.":                                   {},
		"Nothing waits for you. One run works on.":                              {Working: 1},
		"One run is stopped by the cap. Eleven runs failed in the last 7 days.": {Capped: 1, FailedToday: 11},
	} {
		title = strings.ReplaceAll(title, "Eleven", "11")
		require.Equal(t, title, homeView{Counts: counts}.title())
	}
}

// Names from outside are text on every page of ours that shows them.
func TestHostileNamesOnHomeAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document, failing := askingDocument(hostile), failingDocument(hostile)
	document.Steps[0].Name, failing.Steps[0].Name = hostile, hostile
	for _, topic := range []string{hostile, "\u202egnp.exe", "a\x00b", strings.Repeat("long", 200), "{{ input.topic }}"} {
		s.start(s.home, s.publish(s.home, document), map[string]string{"topic": topic})
	}
	s.start(s.home, s.publish(s.home, failing), map[string]string{"topic": hostile})
	s.work()
	for _, role := range []tenants.Role{tenants.Reviewer, tenants.Owner} {
		p := s.in(role).get(s.at()).is(200).says(hostile)
		require.Empty(t, p.all("img", "", ""))
		require.NotContains(t, p.body, "\x00")
	}
}

func TestRunningATemplateWithItsSample(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Builder)
	home := b.get(s.at())
	form := home.byTestID("run-example").Parent
	first := b.post(attr(form, "action"), "key", home.field("key")).is(http.StatusSeeOther).header.Get("Location")
	require.True(t, strings.HasPrefix(first, s.at("runs")+"/"))
	// Sent again it is the same run; a new form is a new run of the same pipeline.
	b.post(attr(form, "action"), "key", home.field("key")).leadsTo(first)
	second := b.post(attr(form, "action"), "key", newFormKey()).is(http.StatusSeeOther).header.Get("Location")
	require.NotEqual(t, first, second)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		all, err := pipeline.List(ctx, tx)
		require.Len(t, all, 1)
		require.EqualValues(t, 2, all[0].Runs)
		page, err2 := engine.ListRuns(ctx, tx, engine.Filter{}, engine.RunID{}, 50)
		require.NoError(t, err2)
		require.True(t, page.Lines[0].Run.Sample)
		return err
	})
	b.post(attr(form, "action")).is(http.StatusBadRequest).says("one-time key")
	b.post(s.at("templates", "nothing", "try"), "key", "k").is(404)
	s.in(tenants.Viewer).post(attr(form, "action"), "key", "k").is(403)
}

// Two presses at the same moment are one run and one pipeline.
func TestTheSampleStartsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := s.at("templates", pipeline.Templates()[0].Slug, "try")
	places := make([]string, 4)
	var all sync.WaitGroup
	for i := range places {
		b := s.in(tenants.Builder)
		all.Go(func() { places[i] = b.post(path, "key", "one").header.Get("Location") })
	}
	all.Wait()
	for _, place := range places {
		require.NotEmpty(t, place)
		require.Equal(t, places[0], place)
	}
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		pipelines, err := pipeline.List(ctx, tx)
		require.Len(t, pipelines, 1)
		return err
	})
}

func TestTimesAreInTheWorkspacesZone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v := &visit{me: s.home.people[tenants.Owner]}
	require.Equal(t, "Europe/Berlin", v.zone().String())
	v.me.User.Zone = "Asia/Tokyo"
	require.Equal(t, "Asia/Tokyo", v.zone().String())
	v.me.User.Zone, v.me.Tenant.Zone = "Nowhere/At_all", "Europe/Berlin"
	require.Equal(t, time.UTC, v.zone())
	require.Equal(t, "due today 17:00", "due "+inSentence("Today 17:00"))
	require.Equal(t, "Fri 27 Nov 14:50", inSentence("Fri 27 Nov 14:50"))
}

func TestEveryStandingHasALook(t *testing.T) {
	t.Parallel()
	for _, standing := range []engine.StandingState{
		engine.StandingFailed, engine.StandingCapped, engine.StandingPerson, engine.StandingRetrying, engine.StandingWaiting, engine.StandingRunning,
		engine.StandingQueued, engine.StandingPaused, engine.StandingCompleted, engine.StandingCancelled,
	} {
		require.Contains(t, ui.Statuses, statusOf(standing), standing)
	}
}
