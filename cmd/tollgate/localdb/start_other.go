//go:build !unix

package localdb

import (
	"context"
	"errors"
)

// Server is never made on this system: it exists so that callers compile.
type Server struct{}

// Start refuses: the ways to own and stop a server used here are Unix ones.
func Start(context.Context, Options) (*Server, error) {
	return nil, errors.New("the local mode cannot run its own Postgres on this system: start one yourself and set DATABASE_URL")
}

// URL is empty: there is no server.
func (s *Server) URL() string { return "" }

// SuperURL is empty: there is no server.
func (s *Server) SuperURL() string { return "" }

// Stop does nothing: there is no server.
func (s *Server) Stop(context.Context) error { return nil }
