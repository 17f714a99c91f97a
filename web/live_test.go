package web

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// message is one event of a stream.
type message struct{ id, event, data string }

// listenTo follows a stream of a real server until its end, event by event.
func listenTo(t *testing.T, s *site, who tenants.Role, path string) <-chan message {
	t.Helper()
	server := httptest.NewServer(s.web.Handler())
	t.Cleanup(server.Close)
	r := s.in(who).request(http.MethodGet, path, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	require.NoError(t, err)
	request.Header = r.Header
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	messages := make(chan message, 100)
	go func() {
		defer close(messages)
		var m message
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.id = value
			case "event":
				m.event = value
			case "data":
				m.data += value + "\n"
			case "":
				if m != (message{}) {
					messages <- m
				}
				m = message{}
			}
		}
	}()
	return messages
}

// next waits for the next event, or for the end of the stream.
func next(t *testing.T, messages <-chan message) (message, bool) {
	t.Helper()
	select {
	case m, open := <-messages:
		return m, open
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came for 30 s")
		return message{}, false
	}
}

// A page that is open shows what changes, and is told the end.
func TestRunIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.calls.say(engine.Reply{Output: []byte(`{"text":"Dear Ms Oduya"}`)})
	run := s.start(s.home, s.publish(s.home, askDocument("Drafts")), map[string]string{"topic": "a refund"})
	page := s.in(tenants.Viewer).get(s.at("runs", run.ID.String())).is(http.StatusOK).says("Queued")
	stream := attr(page.all("div", "id", "run")[0], "hx-sse:connect")
	messages := listenTo(t, s, tenants.Viewer, stream)
	s.work()
	var all []message
	for {
		m, open := next(t, messages)
		if !open {
			break
		}
		all = append(all, m)
	}
	require.GreaterOrEqual(t, len(all), 2)
	end, content := all[len(all)-1], all[len(all)-2]
	require.Equal(t, "end", end.event)
	require.NotEmpty(t, content.id)
	require.Contains(t, content.data, "Nothing is left to do")
	require.Contains(t, content.data, `data-title="Done: a refund · Nordlicht Handel · Tollgate"`)
	require.NotContains(t, content.data, "<!doctype", "a part of the page, not a page")
	require.NotContains(t, content.data, "hx-sse:connect", "the region's inside only")
}

// A browser that has the newest contents gets nothing until something changes, also
// when it comes back.
func TestStreamSendsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"})
	s.work()
	old := listenTo(t, s, tenants.Viewer, s.at("runs", run.ID.String(), "live")+"?version=1&step=ask")
	m, _ := next(t, old)
	require.Contains(t, m.data, "Waiting for a person")
	require.Contains(t, m.data, `id="panel"`)
	fresh := listenTo(t, s, tenants.Viewer, s.at("runs", run.ID.String(), "live")+"?version="+m.id)
	s.in(tenants.Builder).post(s.at("runs", run.ID.String(), "cancel")).is(http.StatusSeeOther)
	for _, stream := range []<-chan message{old, fresh} {
		m, _ := next(t, stream)
		require.Contains(t, m.data, "Cancelled by", "the first that comes is the change")
		m, _ = next(t, stream)
		require.Equal(t, "end", m.event)
	}
}

// Who is removed from the workspace hears no more.
func TestStreamEndsForWhoLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"})
	stream := listenTo(t, s, tenants.Viewer, s.at("runs", run.ID.String(), "live"))
	m, _ := next(t, stream)
	require.Contains(t, m.data, "Queued")
	_, err := s.db.Super(t).Exec(t.Context(), `DELETE FROM members WHERE user_id = $1`, s.home.people[tenants.Viewer].User.ID)
	require.NoError(t, err)
	s.work()
	_, open := next(t, stream)
	require.False(t, open)
}

// A server that stops does not wait for the browsers that follow.
func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.start(s.home, s.publish(s.home, askingDocument("Sign-off")), map[string]string{"topic": "a refund"})
	stream := listenTo(t, s, tenants.Viewer, s.at("runs", run.ID.String(), "live"))
	m, _ := next(t, stream)
	require.Contains(t, m.data, "Queued")
	s.web.EndStreams()
	_, open := next(t, stream)
	require.False(t, open)
}
