package fault

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy stands between a program and a server, and lets pass what the test allows.
type Proxy struct {
	server   string // host:port
	listener net.Listener

	mu      sync.Mutex
	closed  bool
	pipes   map[*pipe]bool
	delay   time.Duration
	refuses bool
	loses   func([]byte) bool // matches the message whose answer gets lost; nil when not armed
	lost    chan struct{}     // closed at the loss that was last ordered
	flows   chan struct{}     // closed while traffic may pass
}

// NewProxy stands before host:port; everything passes at first.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{server: server, listener: listener, pipes: map[*pipe]bool{}, lost: make(chan struct{}), flows: make(chan struct{})}
	close(p.flows)
	t.Cleanup(p.end)
	go p.accept()
	return p
}

// BeforeDatabase stands before the server of a database's URL, and gives the URL that
// leads through the proxy.
func BeforeDatabase(t testing.TB, target string) (*Proxy, string) {
	t.Helper()
	parsed, err := url.Parse(target)
	require.NoError(t, err)
	p := NewProxy(t, parsed.Host)
	parsed.Host = p.Addr()
	return p, parsed.String()
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Delay holds each message, in both directions, for so long, as a slow network or a
// slow disk would. 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Pause lets nothing pass until Resume; connections stay open, and new ones hang.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isClosed(p.flows) {
		p.flows = make(chan struct{})
	}
}

// Resume ends Pause.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.flows) {
		close(p.flows)
	}
}

// Cut breaks every connection there is.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.pipes {
		one.close()
	}
}

// Refuse breaks every new connection at once, until it is called with false.
func (p *Proxy) Refuse(refuses bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = refuses
}

// Lose lets the next message to the server that matches pass, swallows its answer and
// breaks the connection: what was asked for has happened, and nobody is told. The
// channel is closed when it has.
func (p *Proxy) Lose(matches func(message []byte) bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses, p.lost = matches, make(chan struct{})
	return p.lost
}

// BatchSent matches a batch of Postgres statements in one round trip.
func BatchSent(message []byte) bool {
	return bytes.Count(message, []byte("E\x00\x00\x00\x09\x00\x00\x00\x00\x00")) >= 3
}

// CommitSent matches the end of a Postgres transaction.
func CommitSent(message []byte) bool { return bytes.Contains(message, []byte("commit\x00")) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *Proxy) end() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Resume()
	p.Cut()
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
