//go:build unix

package localdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Server is a running local Postgres. It is started again when it dies, on the
// same port, until Stop.
type Server struct {
	home      *home
	binaries  binaries
	passwords passwords
	port      int
	settings  []string
	ephemeral bool
	reaper    io.Closer // of an ephemeral server, else nil
	log       *slog.Logger

	stopping context.Context    // ends when Stop is called
	stop     context.CancelFunc // ends stopping
	done     chan struct{}      // closed when Postgres is gone for good
	once     sync.Once
	stopCtx  context.Context // the bound that Stop's caller gave; set before stop
	stopErr  error
}

// Start makes the database where there is none, clears what an earlier process
// left behind, and returns when the server takes connections. ctx bounds the
// start, not the server's life. Every error is one sentence for the person who
// started the program.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.pickPort == nil {
		opts.pickPort = freePort
	}
	dir, err := opts.folder()
	if err != nil {
		return nil, err
	}
	h, err := openHome(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{home: h, log: opts.Log, ephemeral: opts.Ephemeral, done: make(chan struct{})}
	pm, err := s.open(ctx, opts)
	if err != nil {
		_ = s.leave() // the reason of the failure matters more
		return nil, err
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	go s.supervise(pm)
	return s, nil
}

// URL is the DATABASE_URL of the login that owns database tollgate. It may make
// roles and is no superuser. It stays valid when Postgres is started again.
func (s *Server) URL() string {
	return address(s.port, ownerRole, s.passwords.Owner, ownerRole)
}

// SuperURL is the superuser's login on database postgres, for set-up and tests.
func (s *Server) SuperURL() string {
	return address(s.port, superuser, s.passwords.Super, superuser)
}

// Stop shuts Postgres down, fast but cleanly, by force once ctx or a few seconds
// have passed, and gives the folder back; an ephemeral one is removed. Call it
// last: open connections are cut. Later calls return what the first returned.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		s.stopCtx = ctx
		s.stop()
		<-s.done
		s.stopErr = cmp.Or(s.leave(), s.stopErr)
	})
	return s.stopErr
}

// open does everything up to a server that is ready and has its roles.
func (s *Server) open(ctx context.Context, opts Options) (*child, error) {
	h := s.home
	if s.ephemeral {
		reaper, err := startReaper(h.dir)
		if err != nil {
			return nil, err
		}
		s.reaper = reaper
	}
	have, err := h.dataMajor()
	if err != nil {
		return nil, err
	}
	if have != 0 {
		if err := h.checkOwner(); err != nil {
			return nil, err
		}
	}
	pick := chooser{opts: opts, account: h.account, data: h.data()}
	if s.binaries, err = pick.choose(ctx, have); err != nil {
		return nil, err
	}
	if s.passwords, err = loadPasswords(h.passwords(), have != 0); err != nil {
		return nil, err
	}
	if have == 0 {
		if err := h.initCluster(ctx, s.binaries, s.passwords, !opts.Ephemeral); err != nil {
			return nil, err
		}
	}
	s.settings = opts.settings()
	if err := s.clear(ctx); err != nil {
		return nil, err
	}
	pm, err := s.launchAnywhere(ctx, opts.pickPort)
	if err != nil {
		return nil, err
	}
	if err := prepareRoles(ctx, s.SuperURL(), s.passwords.Owner); err != nil {
		endChild(ctx, pm, stopPatience)
		return nil, err
	}
	return pm, nil
}

// portTries is how often a start looks for another port.
const portTries = 5

func (s *Server) launchAnywhere(ctx context.Context, pick func() (int, error)) (*child, error) {
	for range portTries {
		port, err := pick()
		if err != nil {
			return nil, err
		}
		pm, err := s.home.launch(ctx, s.binaries, port, s.settings)
		if err == nil {
			s.port = port
			return pm, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no free port on 127.0.0.1 was found in %d tries: end other programs, or set DATABASE_URL", portTries)
}

func (s *Server) clear(ctx context.Context) error {
	found, err := s.home.clearLeftover(ctx)
	if found && err == nil {
		s.log.InfoContext(ctx, "a left-over Postgres was stopped", "folder", s.home.data())
	}
	return err
}

// leave gives the folder back; an ephemeral one is removed before its lock is
// released, so that nobody else can be in it.
func (s *Server) leave() error {
	defer s.home.close()
	if !s.ephemeral {
		return nil
	}
	if s.reaper != nil {
		defer s.reaper.Close()
	}
	if err := os.RemoveAll(s.home.dir); err != nil {
		return fmt.Errorf("remove the temporary database: %w", err)
	}
	return nil
}

// stopPatience leaves room in the 10 s that the whole program has to stop.
var stopPatience = patience{fast: 5 * time.Second, quit: 2 * time.Second}
