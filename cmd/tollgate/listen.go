package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// How long a page may take to be asked for. Answers have no limit of their own: live
// pages stay open, and each handler bounds itself.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
)

// listener serves pages until its context ends, and then lets requests under way
// finish.
type listener struct {
	server *http.Server
	failed chan error
}

func listen(socket net.Listener, handler http.Handler, log *slog.Logger) *listener {
	l := &listener{failed: make(chan error, 1), server: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	go func() {
		if err := l.server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
			l.failed <- err
		}
	}()
	return l
}

// wait returns when ctx ends, or when serving broke.
func (l *listener) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-l.failed:
		return fmt.Errorf("serve pages: %w", err)
	}
}

// stop lets requests finish for a while, then cuts those that go on, such as live
// pages, which connect again by themselves.
func (l *listener) stop(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.server.Shutdown(ctx); err != nil {
		return l.server.Close()
	}
	return nil
}

// portsToTry is how many ports above the usual one the local mode looks at.
const portsToTry = 20

// bind takes the named address, or else the usual one or the next port that is free.
// The error is one line that says what to do.
func bind(named string) (net.Listener, error) {
	if named != "" {
		socket, err := net.Listen("tcp", named)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("another program listens at %s; choose another with --addr, or leave it out to take a free one", named)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot listen at %s: %w", named, err)
		}
		return socket, nil
	}
	var err error
	for port := 8080; port < 8080+portsToTry; port++ {
		var socket net.Listener
		if socket, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return socket, nil
		}
	}
	return nil, fmt.Errorf("the ports 8080 to %d are all taken; choose another with --addr: %w", 8080+portsToTry-1, err)
}
