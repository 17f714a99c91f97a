package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// How often a stream looks for changes, how long words such as "for 2 min" may stay as
// they are, how long one connection lasts before the browser makes a new one, and how
// long a browser may take to accept a message. A stream never takes more than a tenth of
// the time that reading its page takes, however large the run is.
const (
	liveLook    = 500 * time.Millisecond
	liveRefresh = 15 * time.Second
	liveLasts   = 30 * time.Minute
	livePatient = 10 * time.Second
	liveShare   = 9 // a page that took long to read rests this many times as long
)

// liveRun streams the page of a run: its whole contents anew whenever something
// changed, and an end once the run has ended. What a person may see is asked again with
// each message, so who was signed out or removed hears no more.
func (s *Server) liveRun(v *visit) error {
	view, err := s.readRun(v)
	if err != nil {
		return err
	}
	stream := liveStream{v: v, run: view.View.Run.ID, seen: seenVersion(v)}
	v.Response().Header().Set("Content-Type", "text/event-stream")
	v.Response().Header().Set("X-Accel-Buffering", "no")
	v.Response().WriteHeader(http.StatusOK)
	if view.View.Version != stream.seen || view.ended() {
		if ended, err := stream.send(view); err != nil || ended {
			return nil // the browser has left, or has all there is
		}
	} else if err := stream.write(": here\n\n"); err != nil {
		return nil
	}
	return s.follow(&stream)
}

// EndStreams ends the streams of all browsers, which connect again by themselves. It is
// for a server that is about to stop and would wait for them.
func (s *Server) EndStreams() { s.end() }

// liveStream is one browser that follows a run.
type liveStream struct {
	v    *visit
	run  engine.RunID
	seen uint64    // version of the run that the browser shows
	sent time.Time // when
	rest time.Time // until when the next look waits
}

// seenVersion is what the browser shows already: the last message of an earlier
// connection, or the page itself.
func seenVersion(v *visit) uint64 {
	for _, text := range []string{v.Request().Header.Get("Last-Event-ID"), v.QueryParam("version")} {
		if seen, err := strconv.ParseUint(text, 10, 64); err == nil {
			return seen
		}
	}
	return 0
}

// follow looks until the run has ended, the browser has left, or the server stops.
func (s *Server) follow(stream *liveStream) error {
	ctx, cancel := context.WithTimeout(stream.v.ctx(), liveLasts)
	defer cancel()
	look := time.NewTicker(liveLook)
	defer look.Stop()
	stream.sent = s.clock()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.ending.Done():
			return nil
		case <-look.C:
		}
		if s.clock().Before(stream.rest) {
			continue
		}
		version, err := stream.version(ctx)
		if err != nil {
			return s.leftOr(ctx, err)
		}
		if version == stream.seen && s.clock().Sub(stream.sent) < liveRefresh {
			continue
		}
		began := s.clock()
		view, err := stream.read(s)
		if err != nil {
			return s.leftOr(ctx, err)
		}
		stream.rest = s.clock().Add(liveShare * s.clock().Sub(began))
		if ended, err := stream.send(view); err != nil || ended {
			return nil
		}
		stream.sent = s.clock()
	}
}

// leftOr hides the errors of a browser that has left.
func (s *Server) leftOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// version is the cheap question that is asked twice a second.
func (l *liveStream) version(ctx context.Context) (uint64, error) {
	var version uint64
	err := l.v.s.DB.InTx(ctx, l.v.me.Tenant.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		version, err = engine.Changed(ctx, tx, l.run)
		return err
	})
	return version, err
}

// read reads the run once more, for the person who is there now.
func (l *liveStream) read(s *Server) (runView, error) {
	if err := l.v.loadSession(); err != nil {
		return runView{}, err
	}
	if err := l.v.admit(); err != nil {
		return runView{}, err
	}
	return s.readRun(l.v)
}

// send writes the contents of the region as one message, and the end behind the last.
func (l *liveStream) send(view runView) (ended bool, err error) {
	var page bytes.Buffer
	if err := view.region().Content().Render(templ.WithChildren(l.v.ctx(), runParts(view)), &page); err != nil {
		return false, err
	}
	var message bytes.Buffer
	fmt.Fprintf(&message, "id: %d\n", view.View.Version)
	for line := range bytes.Lines(page.Bytes()) {
		message.WriteString("data: ")
		message.Write(bytes.TrimRight(line, "\r\n"))
		message.WriteByte('\n')
	}
	message.WriteByte('\n')
	if ended = view.ended(); ended {
		message.WriteString("event: end\ndata: ended\n\n")
	}
	l.seen = view.View.Version
	return ended, l.write(message.String())
}

// write gives a browser that takes nothing a while, and then up.
func (l *liveStream) write(message string) error {
	connection := http.NewResponseController(l.v.Response())
	_ = connection.SetWriteDeadline(l.v.s.clock().Add(livePatient)) // a test's recorder has none
	if _, err := l.v.Response().Write([]byte(message)); err != nil {
		return err
	}
	return connection.Flush()
}
