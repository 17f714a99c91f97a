package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/mail"
	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/jobs"
	"tollgate/tenants"
	"tollgate/web"
)

// rooms are the rooms of one process, made in the order in which they need each other:
// a client that only adds jobs comes first, and workers, which need all rooms, last.
type rooms struct {
	db      *tenants.DB
	secret  tenants.Secret
	earlier []tenants.Secret
	outbox  *mail.Outbox
	notices *notice.Room
	hooks   *jobs.Hooks
	reviews *review.Room
	engine  *engine.Engine
	models  []llm.Model
	trial   jobs.KeyTrial
	log     *slog.Logger
}

// settings are what differs between production and the local mode.
type settings struct {
	config   Config
	sender   mail.Sender
	from     string
	practice *llm.Practice
	fakes    string // host:port of models that break on order; empty where there are none
}

func wire(ctx context.Context, s settings, log *slog.Logger) (*rooms, error) {
	db, err := tenants.Open(ctx, tenants.Config{URL: s.config.DatabaseURL, SystemURL: s.config.SystemDatabaseURL})
	if err != nil {
		return nil, err
	}
	r, err := wireRooms(db, s, log)
	if err != nil {
		db.Close()
		return nil, err
	}
	return r, nil
}

func wireRooms(db *tenants.DB, s settings, log *slog.Logger) (*rooms, error) {
	secret, err := tenants.NewSecret(s.config.Secret)
	if err != nil {
		return nil, err
	}
	inserter, err := jobs.NewInserter(db)
	if err != nil {
		return nil, err
	}
	outbox, err := mail.New(mail.Config{
		Sender: s.sender, Inserter: inserter, From: mail.Address{Email: s.from},
		Links: mail.Links{Secret: secret, BaseURL: s.config.BaseURL},
	})
	if err != nil {
		return nil, fmt.Errorf("TOLLGATE_MAIL_FROM: %w", err)
	}
	registry, err := models(s)
	if err != nil {
		return nil, err
	}
	earlier, err := earlierSecrets(s.config)
	if err != nil {
		return nil, err
	}
	vault, err := tenants.NewVault(secret, earlier...)
	if err != nil {
		return nil, err
	}
	caller, err := jobs.NewHTTP(db, vault, s.config.OutboundAllow...)
	if err != nil {
		return nil, fmt.Errorf("TOLLGATE_OUTBOUND_ALLOW: %w", err)
	}
	ai := jobs.AI{DB: db, Registry: registry, Access: jobs.NewAccess(db, vault, s.config.RateLimits)}
	reviews := review.New(secret, jobs.Invitations{Outbox: outbox})
	notices := notice.New(notice.Config{DB: db, Outbox: outbox, Secret: secret, Path: web.PathIn, Host: strings.TrimRight(s.config.BaseURL, "/")})
	hooks, err := jobs.NewHooks(db, notices, s.config.OutboundAllow...)
	if err != nil {
		return nil, fmt.Errorf("TOLLGATE_OUTBOUND_ALLOW: %w", err)
	}
	return &rooms{
		db: db, secret: secret, earlier: earlier, outbox: outbox, notices: notices, hooks: hooks, reviews: reviews,
		models: registry.Models(), trial: jobs.KeyTrial{Registry: registry}, log: log,
		engine: engine.New(engine.Config{
			DB: db, Jobs: inserter, Reviews: reviews, InputBound: ai.InputBound, MaxOutput: maxOutput(registry), Log: log,
			Callbacks: engine.Callbacks{Secret: secret, BaseURL: s.config.BaseURL},
			Callers: map[pipeline.Kind]engine.Caller{
				pipeline.KindAI:    ai,
				pipeline.KindEmail: jobs.Email{DB: db, Outbox: outbox},
				pipeline.KindHTTP:  caller,
			},
		}),
	}, nil
}

// startWork begins to drive runs and send mail.
func (r *rooms) startWork(ctx context.Context, slices int, drain time.Duration) (*engine.Worker, *jobs.Process, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	worker := r.engine.NewWorker(fmt.Sprintf("%s %d", host, os.Getpid()))
	process, err := jobs.Start(ctx, jobs.Config{
		DB: r.db, Worker: worker, Outbox: r.outbox, Notices: r.notices, Hooks: r.hooks, Slices: slices, Patience: drain, Log: r.log,
	})
	return worker, process, err
}

// newLog writes structured lines; production collects them as JSON.
func newLog(w io.Writer, asJSON bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	options.Level = slog.LevelWarn
	return slog.New(slog.NewTextHandler(w, options))
}

// maxOutput tells how much a model can answer with.
func maxOutput(registry *llm.Registry) func(model string) int {
	return func(model string) int {
		facts, _ := registry.Model(model)
		return int(facts.MaxOutput)
	}
}
