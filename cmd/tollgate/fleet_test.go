package main

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// fleet is the product as in production: working processes on one Postgres, with a
// model server and a mail server outside that count what reaches them. The test itself
// stands in for the pages: it starts runs and answers reviews.
type fleet struct {
	t      *testing.T
	rooms  *rooms
	super  *pgxpool.Pool // sees all rows
	tenant tenants.ID
	owner  tenants.UserID
	model  *fakellm.Server
	post   *postOffice
	env    []string
}

// newFleet stands on an empty or migrated database; super is a superuser's URL of it.
func newFleet(t *testing.T, url, super string) *fleet {
	t.Helper()
	f := &fleet{t: t, model: fakellm.New(1), post: newPostOffice(t)}
	listening := httptest.NewServer(f.model)
	t.Cleanup(func() { f.model.Close(); listening.Close() })
	f.env = []string{
		"DATABASE_URL=" + url, "TOLLGATE_ADDR=127.0.0.1:0", "TOLLGATE_BASE_URL=https://tollgate.example.com",
		"TOLLGATE_SECRET=" + hex.EncodeToString(make([]byte, 32)), "TOLLGATE_MAIL_FROM=tollgate@example.com",
		"TOLLGATE_SMTP_URL=smtp://" + f.post.addr + "?starttls=off", "TOLLGATE_DRAIN=1s",
		"OPENAI_API_KEY=sk-fleet", "OPENAI_BASE_URL=" + listening.URL + "/v1", "TOLLGATE_OUTBOUND_ALLOW=" + listening.Listener.Addr().String(),
	}
	out, code := once(t, []string{"migrate"}, f.env...)
	require.Zero(t, code, out)
	config, err := load(f.getenv)
	require.NoError(t, err)
	f.rooms, err = wire(t.Context(), settings{config: config, sender: mail.Mailbox{}, from: config.MailFrom}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(f.rooms.db.Close)
	f.tenant, f.owner = (&dbtest.Database{DB: f.rooms.db, URL: url}).Tenant(t)
	f.super, err = pgxpool.New(t.Context(), super)
	require.NoError(t, err)
	t.Cleanup(f.super.Close)
	return f
}

// onSharedServer is a fleet on a database of its own on the server that all tests share.
func onSharedServer(t *testing.T) *fleet {
	t.Helper()
	db := dbtest.Open(t)
	return newFleet(t, db.URL, db.Super(t).Config().ConnString())
}

func (f *fleet) getenv(name string) string {
	for _, entry := range f.env {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// work starts a working process and waits until it drives runs.
func (f *fleet) work(env ...string) *fault.Process {
	f.t.Helper()
	process := startProgram(f.t, []string{"work"}, append(f.env, env...)...)
	process.AwaitLine("driving runs", 30*time.Second)
	return process
}

// publish stores a document and makes it live.
func (f *fleet) publish(document string) pipeline.ID {
	f.t.Helper()
	parsed, err := pipeline.Parse([]byte(document))
	require.NoError(f.t, err)
	var id pipeline.ID
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		if id, err = pipeline.Create(ctx, tx, parsed, "", f.owner); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", f.owner)
		return err
	})
	return id
}

// start begins a run under the key, as often as it takes: the database may be away.
func (f *fleet) start(id pipeline.ID, input, key string) {
	f.t.Helper()
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := f.rooms.engine.Start(ctx, tx, engine.StartRequest{Pipeline: id, Input: []byte(input), By: f.owner, Key: key})
		return err
	})
}

// in works in the tenant, and tries again while the database is away. What is done must
// bear being done twice.
func (f *fleet) in(fn func(context.Context, tenants.Tx) error) {
	f.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if err = f.rooms.db.InTx(context.Background(), f.tenant, fn); !tenants.IsTrouble(err) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(f.t, err)
}

// answer approves every open review.
func (f *fleet) answer() {
	f.t.Helper()
	var waiting []engine.StepRunID
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT step_run_id FROM waits WHERE state = 'open' AND kind = 'review'`)
		var err error
		waiting, err = pgx.CollectRows(rows, pgx.RowTo[engine.StepRunID])
		return err
	})
	for _, step := range waiting {
		f.in(func(ctx context.Context, tx tenants.Tx) error {
			detail, err := f.rooms.reviews.ByStepRun(ctx, tx, step)
			if err != nil || !detail.Open() {
				return err
			}
			seat := detail.Seats[0]
			_, err = f.rooms.engine.DecideReview(ctx, tx, review.Decision{
				Seat: seat.ID, Viewer: review.Viewer{Token: f.rooms.secret.SeatToken(seat.ID, seat.Generation)},
				Digest: detail.Digest, Verdict: review.Approve,
			})
			return err
		})
	}
}

// count asks for one number, and tries again while the database is away.
func (f *fleet) count(query string, args ...any) int {
	f.t.Helper()
	var n int
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f.super.QueryRow(context.Background(), query, args...).Scan(&n); !tenants.IsTrouble(err) {
			break
		}
	}
	require.NoError(f.t, err, query)
	return n
}

// open is how many runs have not ended.
func (f *fleet) open() int {
	f.t.Helper()
	return f.count(`SELECT count(*) FROM runs WHERE ended_at IS NULL`)
}

// awaitEnds answers reviews until no run is open.
func (f *fleet) awaitEnds(within time.Duration) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.answer()
		return f.open() == 0
	}, within, 200*time.Millisecond, "runs are open")
}

// workerID is the id under which a process works.
func (f *fleet) workerID(process *fault.Process) string {
	f.t.Helper()
	return fault.WorkerID(f.t, f.super, process)
}
