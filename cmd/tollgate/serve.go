package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/migrations"
	"tollgate/tenants"
	"tollgate/web"
)

// serveWeb serves pages until it is stopped.
func serveWeb(ctx context.Context, p *program) error {
	r, log, err := p.production(ctx)
	if err != nil {
		return err
	}
	defer r.db.Close()
	server, err := r.newWeb(p.config, nil)
	if err != nil {
		return err
	}
	socket, err := bind(p.config.Addr)
	if err != nil {
		return err
	}
	go r.engine.Pump(ctx, 0) // so that what was started or answered here need not wait for a worker's next look
	log.Info("serving pages", slog.Any("config", p.config), slog.String("database", r.db.Mode()))
	pages := listen(socket, server.Handler(), log)
	pages.server.RegisterOnShutdown(server.EndStreams)
	broken := pages.wait(ctx)
	if err := pages.stop(webPatience); err != nil {
		return err
	}
	return broken
}

// webPatience is how long requests under way may go on after a stop.
const webPatience = 20 * time.Second

// serveWork drives runs until it is stopped. It answers health checks, too.
func serveWork(ctx context.Context, p *program) error {
	r, log, err := p.production(ctx)
	if err != nil {
		return err
	}
	defer r.db.Close()
	socket, err := bind(p.config.Addr)
	if err != nil {
		return err
	}
	health := listen(socket, healthOnly(r.db), log)
	_, process, err := r.startWork(ctx, p.config.Slices, p.config.Drain)
	if err != nil {
		return err
	}
	log.Info("driving runs", slog.Any("config", p.config), slog.String("database", r.db.Mode()))
	broken := health.wait(ctx)
	if err := process.Stop(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("stop work: %w", err)
	}
	if err := health.stop(time.Second); err != nil {
		return err
	}
	return broken
}

// healthOnly answers the checks that the process is up, and that it can work: its
// database answers and takes changes.
func healthOnly(db *tenants.DB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { sayHealth(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyPatience)
		defer cancel()
		if err := db.Ping(ctx); err != nil {
			sayHealth(w, http.StatusServiceUnavailable, "the database does not answer, or takes no changes")
			return
		}
		sayHealth(w, http.StatusOK, "ready")
	})
	return mux
}

// readyPatience is how long the check waits for the database.
const readyPatience = 5 * time.Second

func sayHealth(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, words)
}

// production wires the rooms by the environment, and refuses to run ahead of the
// database's tables.
func (p *program) production(ctx context.Context) (*rooms, *slog.Logger, error) {
	if err := p.config.forServing(); err != nil {
		return nil, nil, err
	}
	log := newLog(p.errs, true)
	sender, err := mail.NewSMTP(p.config.SMTPURL, mailHost(p.config.MailFrom))
	if err != nil {
		return nil, nil, fmt.Errorf("TOLLGATE_SMTP_URL: %w", err)
	}
	r, err := wire(ctx, settings{
		config: p.config, sender: sender, from: p.config.MailFrom, practice: llm.NewPractice(practiceShortest, practiceLongest),
	}, log)
	if err != nil {
		return nil, nil, err
	}
	pending, err := migrations.Pending(ctx, r.db.System())
	if err == nil && pending > 0 {
		err = fmt.Errorf("the database lacks %d migrations of this release; run: tollgate migrate", pending)
	}
	if err != nil {
		r.db.Close()
		return nil, nil, err
	}
	return r, log, nil
}

// The practice model takes about as long as a small real one, so that a run can be seen
// running.
const (
	practiceShortest = 300 * time.Millisecond
	practiceLongest  = 800 * time.Millisecond
)

func mailHost(from string) string {
	_, host, _ := strings.Cut(from, "@")
	return host
}

// newWeb makes the pages; local is set in the local mode.
func (r *rooms) newWeb(config Config, local *web.Local) (*web.Server, error) {
	var models []web.Model
	for _, model := range r.models {
		models = append(models, web.Model{ID: model.ID, Name: model.Name, Practice: model.Practice, OwnKeyOnly: model.OwnKeyOnly})
	}
	operators := config.Operators
	if local != nil {
		operators = append(operators, tenants.DemoOwner)
	}
	return web.New(web.Config{
		Operators: operators,
		DB:        r.db, Engine: r.engine, Reviews: r.reviews, Outbox: r.outbox, Secret: r.secret, EarlierSecrets: r.earlier, Models: models, KeyTrial: r.trial,
		BaseURL: config.BaseURL, Secure: strings.HasPrefix(config.BaseURL, "https://"), Local: local, Log: r.log,
		ClientIP: config.ClientIP, Outdated: func(ctx context.Context) (bool, error) {
			pending, err := migrations.Pending(ctx, r.db.System())
			return pending > 0, err
		},
	})
}

// migrate brings the database up to this release.
func migrate(ctx context.Context, p *program) error {
	url := p.config.OwnerDatabaseURL
	if url == "" {
		url = p.config.DatabaseURL
	}
	if url == "" {
		return fmt.Errorf("DATABASE_URL is not set; it should hold postgres://user:password@host:5432/database")
	}
	applied, err := migrations.Up(ctx, url)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%d migrations applied; the database is at this release\n", applied)
	return nil
}
