package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// waitingForEvent starts a run and lets its step wait for an event.
func (s *site) waitingForEvent(topic, name, key string) engine.Run {
	s.t.Helper()
	run := s.start(s.home, s.publish(s.home, askingDocument("Order")), map[string]string{"topic": topic})
	s.work()
	_, err := s.db.Super(s.t).Exec(s.t.Context(), `UPDATE waits SET kind = 'event', event_name = $2, event_key = $3 WHERE run_id = $1`, run.ID, name, key)
	require.NoError(s.t, err)
	return run
}

func (s *site) sendEvent(name, key, data string) engine.EventID {
	s.t.Helper()
	var sent engine.Sent
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		sent, err = s.engine.SendEvent(ctx, tx, engine.Event{Name: name, Key: key, Data: []byte(data), Sender: "Shop system"})
		return err
	})
	return sent.Event.ID
}

// eventForm opens the form and gives its address and its key.
func eventForm(b *browser) (path, key string) {
	path = b.s.at("events", "send")
	return path, b.get(path).follow().is(http.StatusOK).field(formKeyName)
}

// The run's page says what it waits for; sending that by hand lets it go on, on record,
// and pressing twice is once.
func TestEventIsSentByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.waitingForEvent("Order of Ms Oduya", "paid", "77")
	b := s.in(tenants.Builder)
	b.get(s.at("runs", run.ID.String())).says("Waiting for the event “paid” with key 77", "without a deadline", "Send the event")
	b.get(s.at("events")).says("No event was sent", "paid")
	path, key := eventForm(b)
	sent := b.post(path, formKeyName, key, "name", " paid ", "key", "77", "data", "{\r\n  \"amount\": 9007199254740993}")
	page := sent.follow().is(http.StatusOK).says("The event is sent, and 1 run goes on", "Order of Ms Oduya", "Builder", "9007199254740993")
	again := b.post(path, formKeyName, key, "name", "paid", "key", "77", "data", "{\n  \"amount\": 9007199254740993}").follow()
	again.says("nothing new was sent")
	require.Equal(t, strings.TrimSuffix(page.path, "?sent=now"), strings.TrimSuffix(again.path, "?sent=before"))
	b.get(s.at("events")).says("Order of Ms Oduya").hides("Unused")
	id := page.path[strings.LastIndex(page.path, "/")+1 : strings.Index(page.path, "?")]
	event, err := tenants.ParseID[engine.Event](id)
	require.NoError(t, err)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "event", ID: event}, tenants.AuditID{})
		require.Len(t, entries, 1)
		require.Equal(t, "event.sent", entries[0].Action)
		return err
	})
}

// What is wrong is said beside its field, with the line for data, and nothing typed is
// lost; what was changed after sending is another event.
func TestEventThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.in(tenants.Owner)
	path, key := eventForm(b)
	for _, test := range []struct{ name, key, data, says string }{
		{"", "", "", "The event has no name"},
		{"paid", strings.Repeat("7", 201), "", "201 characters; at most 200"},
		{"paid", "77", "{\n  \"amount\": 420,\n  \"currency\": EUR\n}", "Line 3, character 15 is not JSON"},
		{"paid", "77", "{\"amount\": 420", "Line 1, character 15 is not JSON"},
		{"paid", "77", `"` + strings.Repeat("x", 256<<10) + `"`, "larger than 256 KB"},
	} {
		p := b.post(path, formKeyName, key, "name", test.name, "key", test.key, "data", test.data)
		p.is(http.StatusUnprocessableEntity).says(test.says)
		require.Equal(t, "Error: 1 thing to fix · Nordlicht Handel · Tollgate", p.title())
		require.Equal(t, test.name, p.field("name"))
		require.Equal(t, key, p.field(formKeyName))
		require.Equal(t, test.data, typedIn(p.all("textarea", "", "")[0]))
	}
	b.post(path, "name", "paid").is(http.StatusBadRequest)
	b.post(path, formKeyName, key, "name", "paid").follow().says("No run waits for it now", "null")
	changed := b.post(path, formKeyName, key, "name", "paid", "key", "78").is(http.StatusUnprocessableEntity).says("another event")
	b.post(path, formKeyName, changed.field(formKeyName), "name", "paid", "key", "78").follow().says("78")
	b.get(s.at("events")).says("Unused", "78")
}

// The list shows who used what, by name and by page.
func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.waitingForEvent(hostile, "paid", "1")
	s.sendEvent("paid", "1", "1")
	for n := range eventsPerPage {
		s.sendEvent("shipped", fmt.Sprint("parcel ", n), `{}`)
	}
	viewer := s.in(tenants.Viewer)
	first := viewer.get(s.at("events")).is(http.StatusOK).says("parcel 49", "Unused", "Shop system", "Older events").hides("Send an event")
	viewer.get(hrefOf(t, first, "Older events")).says("paid", "Back to the newest").hides("parcel", hostile)
	viewer.get(s.at("events") + "?name=paid").says("“paid”: events of the last 30 days").hides("parcel")
	viewer.get(s.at("events") + "?name=unheard").says("No event “unheard” was sent")
	viewer.get(s.at("events") + "?before=x").is(http.StatusNotFound)
	viewer.get(s.at("events", "send")).is(http.StatusForbidden).says("Only an owner, an admin or a builder can start and change runs")
}

// typedIn is the text of a large field, its lines as they are.
func typedIn(area *html.Node) string {
	if area.FirstChild == nil {
		return ""
	}
	return strings.TrimPrefix(area.FirstChild.Data, "\n")
}

// hrefOf is where a link of the page leads to.
func hrefOf(t *testing.T, p *page, words string) string {
	t.Helper()
	for _, link := range p.all("a", "", "") {
		if strings.TrimSpace(textOf(link)) == words {
			return attr(link, "href")
		}
	}
	t.Fatalf("no link %q", words)
	return ""
}

// The pages about events pass the checks of a browser and of axe on a phone and on a
// desk, light and dark; the form works without a script like any other.
func TestTheLookOfEvents(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	waiting := s.waitingForEvent("Order of Ms Oduya", "paid", "77")
	s.waitingForEvent("Order of Mr Lindqvist", "document received", "NL-2026-117733")
	used := s.sendEvent("document received", "NL-2026-117733", `{"file": "report.pdf", "pages": 12}`)
	s.sendEvent(hostile[:min(len(hostile), 100)], "a-very-long-key-without-any-room-to-break-"+strings.Repeat("x", 100), `{}`)
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			look := func(name string, path string) {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
			look("events", s.at("events"))
			look("event", s.at("events", used.String()))
			look("run-waits-for-event", s.at("runs", waiting.ID.String()))
			look("send-event", s.at("events", "send")+"?name=paid&key=77")
			p.Do(chromedp.SetValue(chromedp.CSS(`textarea`), "{\n  \"amount\": EUR\n}"), chromedp.Click(chromedp.CSS(`[data-testid="send-event"]`)),
				chromedp.WaitReady(chromedp.CSS(`.fault`)))
			p.Shot("send-event-fault")
			require.Empty(t, p.Axe())
			require.Empty(t, p.Overflow())
		})
	}
}
