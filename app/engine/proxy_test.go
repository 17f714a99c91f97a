package engine_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lossy stands between us and the database. When it is armed it lets the next matching
// message through, swallows the answer and breaks the connection: what was asked for
// has happened, and we are never told.
type lossy struct {
	url   string
	armed atomic.Pointer[func([]byte) bool]
	lost  chan struct{} // closed at the first loss
	once  sync.Once
}

// batchSent matches a batch in one round trip, commitSent the end of a transaction.
func batchSent(message []byte) bool {
	return bytes.Count(message, []byte("E\x00\x00\x00\x09\x00\x00\x00\x00\x00")) >= 3
}

func commitSent(message []byte) bool { return bytes.Contains(message, []byte("commit\x00")) }

func newLossy(t *testing.T, target string) *lossy {
	t.Helper()
	parsed, err := url.Parse(target)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	server := parsed.Host
	parsed.Host = listener.Addr().String()
	l := &lossy{url: parsed.String(), lost: make(chan struct{})}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client, server)
		}
	}()
	return l
}

func (l *lossy) arm(matches func([]byte) bool) { l.armed.Store(&matches) }

func (l *lossy) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool
	go func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if deaf.Load() {
				_, _ = io.Copy(io.Discard, server)
				return
			}
			if err != nil {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<20)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		matches := l.armed.Load()
		loses := matches != nil && (*matches)(buffer[:n]) && l.armed.CompareAndSwap(matches, nil)
		deaf.Store(loses)
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if loses {
			time.Sleep(200 * time.Millisecond) // the server does what it was asked
			l.once.Do(func() { close(l.lost) })
			return
		}
	}
}
