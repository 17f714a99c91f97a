package review_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/review"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// bundle is a workspace with an owner, two reviewers and a room.
type bundle struct {
	db            *dbtest.Database
	tenant        tenants.ID
	owner         tenants.UserID // asks, in most tests
	ben, chi      tenants.UserID
	secret        tenants.Secret
	room          *review.Room
	outbox        *outbox
	run, stepRun  [16]byte
	otherTenant   tenants.ID
	otherTenantBy tenants.UserID
}

func setup(t *testing.T) bundle {
	t.Helper()
	db := dbtest.Open(t)
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{9}, 32))
	require.NoError(t, err)
	b := bundle{db: db, secret: secret, outbox: &outbox{}, run: tenants.NewID[string](), stepRun: tenants.NewID[string]()}
	b.tenant, b.owner = db.Tenant(t)
	b.otherTenant, b.otherTenantBy = db.Tenant(t)
	b.ben = b.addMember(t, "ben@example.com", "Ben Okonkwo", "reviewer")
	b.chi = b.addMember(t, "chi@example.com", "Chi Lin", "reviewer")
	b.room = review.New(secret, b.outbox)
	return b
}

func (b bundle) addMember(t testing.TB, email, name, role string) tenants.UserID {
	t.Helper()
	user := tenants.NewID[tenants.User]()
	require.NoError(t, b.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		batch := &pgx.Batch{}
		batch.Queue(`INSERT INTO users (id, email, name, zone) VALUES ($1, $2, $3, 'Europe/Berlin')`, user, email, name)
		batch.Queue(`INSERT INTO members (tenant_id, user_id, role) VALUES ($1, $2, $3)`, b.tenant, user, role)
		return tx.SendBatch(ctx, batch).Close()
	}))
	return user
}

func (b bundle) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := b.db.Super(t).Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

// in runs fn in the bundle's workspace.
func (b bundle) in(t testing.TB, fn func(ctx context.Context, tx tenants.Tx) error) error {
	t.Helper()
	return b.db.InTx(t.Context(), b.tenant, fn)
}

// question asks Ben, Chi and Kim, who is from outside.
func (b bundle) question() review.Question {
	return review.Question{
		RunID: b.run, StepRunID: b.stepRun, PipelineName: "Customer e-mail triage", RunName: "Order 4711",
		Title: "Send this reply?", Body: "Jane wants her money back.", Facts: []review.Fact{{Label: "Amount", Value: "€420.00"}},
		Proposal:  review.Proposal{Text: "Dear Jane, we pay.", By: "practice model", AI: true},
		People:    []review.Person{{User: b.ben, Group: "Reviewers"}, {User: b.chi}, {Email: "Kim Lee <kim@outside.example>"}},
		Requester: b.owner, SendBack: true,
	}
}

func (b bundle) open(t testing.TB, q review.Question) review.ID {
	t.Helper()
	id, err := b.tryOpen(t, q)
	require.NoError(t, err)
	return id
}

func (b bundle) tryOpen(t testing.TB, q review.Question) (review.ID, error) {
	t.Helper()
	var id review.ID
	err := b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = b.room.Open(ctx, tx, q)
		return err
	})
	return id, err
}

func (b bundle) detail(t testing.TB, id review.ID) review.Detail {
	t.Helper()
	var d review.Detail
	require.NoError(t, b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		d, err = b.room.ByID(ctx, tx, id)
		return err
	}))
	return d
}

// token is what the mail to an address carries.
func (b bundle) token(t testing.TB, id review.ID, address string) string {
	t.Helper()
	seat := b.seat(t, id, address)
	return b.secret.SeatToken(seat.ID, seat.Generation)
}

func (b bundle) seat(t testing.TB, id review.ID, address string) review.SeatRow {
	t.Helper()
	for _, seat := range b.detail(t, id).Seats {
		if seat.Address == address {
			return seat
		}
	}
	t.Fatalf("%s has no seat", address)
	return review.SeatRow{}
}

// byLink is an answer by the link that was mailed to an address.
func (b bundle) byLink(t testing.TB, id review.ID, address string, verdict review.Verdict) review.Decision {
	t.Helper()
	return review.Decision{
		Seat: b.seat(t, id, address).ID, Viewer: review.Viewer{Token: b.token(t, id, address), Client: "192.0.2.7"},
		Digest: b.detail(t, id).Digest, Verdict: verdict, Comment: comment(verdict),
	}
}

func comment(verdict review.Verdict) string {
	if verdict == review.Approve {
		return ""
	}
	return "The amount is wrong."
}

func (b bundle) decide(t testing.TB, d review.Decision) (review.Result, error) {
	t.Helper()
	var result review.Result
	err := b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		result, err = b.room.Decide(ctx, tx, d)
		return err
	})
	return result, err
}

func (b bundle) close(t testing.TB, id review.ID, why review.Outcome) (bool, error) {
	t.Helper()
	var closed bool
	err := b.in(t, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		closed, err = b.room.Close(ctx, tx, id, why)
		return err
	})
	return closed, err
}

// everything is all that reviews have written, to see whether something changed.
func (b bundle) everything(t testing.TB) string {
	t.Helper()
	var rows string
	require.NoError(t, b.db.Super(t).QueryRow(t.Context(), `SELECT
		coalesce((SELECT string_agg(r::text || r.xmin::text, '|' ORDER BY id) FROM reviews r), '') ||
		coalesce((SELECT string_agg(s::text || s.xmin::text, '|' ORDER BY id) FROM seats s), '') ||
		coalesce((SELECT string_agg(d::text || d.xmin::text, '|' ORDER BY id) FROM decisions d), '')`).Scan(&rows))
	return rows
}

// outbox remembers who is asked, and when somebody was reached.
type outbox struct {
	mu      sync.Mutex
	invited []review.Invitation
	sent    time.Time
	fail    error
}

func (o *outbox) Invite(_ context.Context, _ tenants.Tx, i review.Invitation) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.invited = append(o.invited, i)
	return o.fail
}

func (o *outbox) FirstSent(context.Context, tenants.Tx, []review.SeatID) (time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent, nil
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }
