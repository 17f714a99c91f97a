package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// RequestID identifies a request.
type RequestID = tenants.IDOf[Request]

// RequestState is how far a request is.
type RequestState string

// The states of a request.
const (
	RequestOpen      RequestState = "open"
	RequestGranted   RequestState = "granted"
	RequestDeclined  RequestState = "declined"
	RequestWithdrawn RequestState = "withdrawn"
)

// Request is a change of money that waits for a person, or did.
type Request struct {
	ID        RequestID
	Change    Change
	Reason    string
	AskedBy   tenants.UserID
	AskedAt   time.Time
	FirstBy   tenants.UserID // who agreed first, where two must; zero for nobody yet
	State     RequestState
	DecidedBy tenants.UserID
	DecidedAt *time.Time
	Note      string
}

// The reasons why a request cannot be asked or decided.
var (
	ErrNoRequest  = errors.New("there is no such request about money")
	ErrNotAsking  = errors.New("the request is decided already")
	ErrSamePerson = errors.New("a second person must confirm this")
)

// MaxReason bounds a reason and a note, in characters.
const MaxReason = 500

// Ask puts a change before those who may decide about money. Sending the same form
// again finds the first request. Builders may ask, and whoever may start runs.
func Ask(ctx context.Context, tx tenants.Tx, change Change, reason, formKey string, by tenants.Membership) (RequestID, error) {
	if err := by.Require(tenants.StartRuns); err != nil {
		return RequestID{}, err
	}
	if change.Cap == nil {
		return RequestID{}, fmt.Errorf("%w: only a cap can be asked for", ErrBadCap)
	}
	if err := change.check(); err != nil {
		return RequestID{}, err
	}
	id, err := insertRequest(ctx, tx, Request{Change: change, Reason: reason, AskedBy: by.User.ID}, formKey)
	if err != nil {
		return RequestID{}, err
	}
	return id, tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "cap.asked", Target: change.Cap.Place.Target(),
		Detail: map[string]any{"cap": change.Cap, "reason": cleanReason(reason), "request": id},
	})
}

func insertRequest(ctx context.Context, tx tenants.Tx, r Request, formKey string) (RequestID, error) {
	change, err := json.Marshal(r.Change)
	if err != nil {
		return RequestID{}, fmt.Errorf("write a request about money: %w", err)
	}
	var first *tenants.UserID
	if !r.FirstBy.IsZero() {
		first = &r.FirstBy
	}
	var id RequestID
	err = tx.QueryRow(ctx, `
		INSERT INTO money_requests (tenant_id, id, kind, change, reason, asked_by, asked_at, form_key, first_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (tenant_id, asked_by, form_key) DO NOTHING RETURNING id`,
		tx.Tenant, tenants.NewID[Request](), r.Change.kind(), change, cleanReason(r.Reason), r.AskedBy, tx.Now, formKey, first).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, `SELECT id FROM money_requests WHERE tenant_id = $1 AND asked_by = $2 AND form_key = $3`,
			tx.Tenant, r.AskedBy, formKey).Scan(&id)
	}
	if err != nil {
		return RequestID{}, fmt.Errorf("write a request about money: %w", err)
	}
	return id, nil
}

// cleanReason makes what a person wrote storable and short.
func cleanReason(reason string) string {
	reason = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(reason, "\uFFFD"), "\x00", ""))
	if utf8.RuneCountInString(reason) > MaxReason {
		reason = string([]rune(reason)[:MaxReason-1]) + "…"
	}
	return reason
}

const requestColumns = `SELECT id, change, reason, asked_by, asked_at, coalesce(first_by, $2), state, coalesce(decided_by, $2), decided_at, note
	FROM money_requests WHERE tenant_id = $1`

// RequestByID reads one request. It fails with ErrNoRequest.
func RequestByID(ctx context.Context, tx tenants.Tx, id RequestID) (Request, error) {
	found, err := requests(ctx, tx, requestColumns+` AND id = $3`, tx.Tenant, tenants.UserID{}, id)
	if err == nil && len(found) == 0 {
		err = ErrNoRequest
	}
	if err != nil {
		return Request{}, err
	}
	return found[0], nil
}

// OpenRequests are those that wait for somebody, the oldest first, 100 at most.
func OpenRequests(ctx context.Context, tx tenants.Tx) ([]Request, error) {
	return requests(ctx, tx, requestColumns+` AND state = 'open' ORDER BY id LIMIT 100`, tx.Tenant, tenants.UserID{})
}

func requests(ctx context.Context, tx tenants.Tx, query string, args ...any) ([]Request, error) {
	rows, _ := tx.Query(ctx, query, args...)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Request, error) {
		var r Request
		var change []byte
		err := row.Scan(&r.ID, &change, &r.Reason, &r.AskedBy, &r.AskedAt, &r.FirstBy, &r.State, &r.DecidedBy, &r.DecidedAt, &r.Note)
		if err != nil {
			return Request{}, err
		}
		return r, json.Unmarshal(change, &r.Change)
	})
	if err != nil {
		return nil, fmt.Errorf("read requests about money: %w", err)
	}
	return found, nil
}
