package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/cmd/tollgate/localdb"
	"tollgate/migrations"
	"tollgate/web"
)

// How long the local mode waits at its end: together with Postgres below ten seconds.
const (
	localDrain = 3 * time.Second
	pagesDrain = time.Second
	dbStop     = 4 * time.Second
)

// localFrom is the sender's address of a mailbox that nothing leaves.
const localFrom = "tollgate@localhost.example"

// dev is the local mode: its own Postgres unless DATABASE_URL is set, pages and work in
// one process, a mailbox instead of a mail server, and the demo workspace.
func dev(ctx context.Context, p *program) error {
	log := newLog(p.errs, false)
	dir, err := p.dataDir()
	if err != nil {
		return err
	}
	socket, err := bind(p.flags.addr)
	if err != nil {
		return err
	}
	defer socket.Close()
	alone := p.config.DatabaseURL == ""
	if alone {
		server, err := localdb.Start(ctx, localdb.Options{Dir: dir, Log: log, Download: p.flags.download})
		if err != nil {
			return err
		}
		defer stopDatabase(server, log)
		p.config.DatabaseURL = server.URL()
	}
	if err := p.completeConfig(dir, socket); err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, p.config.DatabaseURL); err != nil {
		return err
	}
	return p.runLocal(ctx, socket, alone, log)
}

// runLocal serves and works until ctx ends. Stopping goes the other way round: pages,
// work, and last, by the caller, Postgres.
func (p *program) runLocal(ctx context.Context, socket net.Listener, alone bool, log *slog.Logger) error {
	fakes, address, err := serveFakes(log)
	if err != nil {
		return err
	}
	defer func() { _ = fakes.stop(0) }()
	p.fakes = address
	r, err := p.wireLocal(ctx, log)
	if err != nil {
		return err
	}
	defer r.db.Close()
	if err := r.seedLocal(ctx); err != nil {
		return err
	}
	work := &localWorker{
		wire: p.wireLocal, slices: p.config.Slices, drain: localDrain, log: log,
	}
	server, err := r.newWeb(p.config, &web.Local{Break: breaking(work)})
	if err != nil {
		return err
	}
	worker, err := work.start(ctx)
	if err != nil {
		return err
	}
	if alone { // the lock on the data folder says so: whoever worked here before is gone
		if err := worker.BuryOthers(ctx); err != nil {
			return err
		}
	}
	go r.engine.Pump(ctx, 0) // what the pages start or answer need not wait for the worker's next look
	pages := listen(socket, server.Handler(), log)
	pages.server.RegisterOnShutdown(server.EndStreams)
	fmt.Fprintf(p.out, "Tollgate is ready: %s\n", p.config.BaseURL)
	broken := pages.wait(ctx)
	fmt.Fprintln(p.out, "Stopping…")
	return errors.Join(broken, pages.stop(pagesDrain), work.stop(context.WithoutCancel(ctx)))
}

func (p *program) wireLocal(ctx context.Context, log *slog.Logger) (*rooms, error) {
	s := settings{config: p.config, sender: mail.Mailbox{}, from: localFrom, practice: llm.NewPractice(practiceShortest, practiceLongest), fakes: p.fakes}
	if p.config.SMTPURL != "" {
		sender, err := mail.NewSMTP(p.config.SMTPURL, "localhost")
		if err != nil {
			return nil, fmt.Errorf("TOLLGATE_SMTP_URL: %w", err)
		}
		s.sender = sender
	}
	if p.config.MailFrom != "" {
		s.from = p.config.MailFrom
	}
	return wire(ctx, s, log)
}

// completeConfig fills in what the local mode can find out by itself.
func (p *program) completeConfig(dir string, socket net.Listener) error {
	if p.config.BaseURL == "" {
		p.config.BaseURL = "http://" + socket.Addr().String()
	}
	if p.config.Secret != nil {
		return nil
	}
	var err error
	p.config.Secret, err = localSecret(dir)
	return err
}

// dataDir is the folder of the local mode. The local Postgres makes it where it is not
// there, so that it can reach it whatever user it runs as.
func (p *program) dataDir() (string, error) {
	dir := p.flags.data
	if dir == "" {
		var err error
		if dir, err = localdb.DefaultDir(); err != nil {
			return "", err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--data %s: %w", p.flags.data, err)
	}
	return dir, nil
}

// localSecret reads the secret that links and codes are derived from, or makes it.
func localSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, "secret")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newLocalSecret(dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the local secret: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) < 32 {
		return nil, fmt.Errorf("%s is damaged; remove it to make a new one, which ends all open links", path)
	}
	return secret, nil
}

// newLocalSecret writes a fresh secret whole or not at all: a kill in the middle leaves
// none, and the next start makes another.
func newLocalSecret(dir, path string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the data folder; choose another with --data: %w", err)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	half := path + ".new"
	if err := os.WriteFile(half, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("keep the local secret: %w", err)
	}
	return secret, os.Rename(half, path)
}

func stopDatabase(server *localdb.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), dbStop)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		log.Error("stop Postgres", slog.String("error", err.Error()))
	}
}
