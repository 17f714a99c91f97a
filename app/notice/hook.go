package notice

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// HookID identifies a message to another system; it is the same for every try.
type HookID = tenants.IDOf[Hook]

// Hook is a message that is being sent to another system.
type Hook struct {
	Tenant     tenants.ID
	ID         HookID
	Pipeline   pipeline.ID
	URL        string
	Generation int
	Body       string
	Attempt    int // this one, from 1
	CreatedAt  time.Time
}

// HookLine is a message as its page lists it.
type HookLine struct {
	ID        HookID
	State     string // queued, sending, sent, failed
	Attempt   int
	LastError string
	NextTryAt time.Time
	CreatedAt time.Time
	EndedAt   *time.Time
}

// pauses are those before the next try, as the standard for webhooks proposes them.
var pauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// abandoned is when a try whose process fell silent is made again.
const abandoned = 2 * time.Minute

func (r *Room) queueHook(ctx context.Context, tx tenants.Tx, s Settings, one pipeline.Pipeline, n news) error {
	body, err := r.hookOf(tx, one, n)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO notice_hooks (tenant_id, id, pipeline_id, url, generation, body) VALUES ($1, $2, $3, $4, $5, $6)`,
		tx.Tenant, tenants.NewID[Hook](), one.ID, s.HookURL, s.Generation, string(body))
	if err != nil {
		return fmt.Errorf("queue a message: %w", err)
	}
	return nil
}

// ClaimHooks takes messages whose time has come, at most limit, so that no other process
// sends them meanwhile.
func (r *Room) ClaimHooks(ctx context.Context, tx tenants.SystemTx, limit int) ([]Hook, error) {
	rows, _ := tx.Query(ctx, `
		UPDATE notice_hooks h SET state = 'sending', attempt = h.attempt + 1, claimed_at = now()
		FROM (
			SELECT tenant_id, id FROM notice_hooks
			WHERE state = 'queued' AND next_try_at <= now() OR state = 'sending' AND next_try_at <= now() AND claimed_at < now() - $2::interval
			ORDER BY next_try_at LIMIT $1 FOR UPDATE SKIP LOCKED) due
		WHERE h.tenant_id = due.tenant_id AND h.id = due.id
		RETURNING h.tenant_id, h.id, h.pipeline_id, h.url, h.generation, h.body, h.attempt, h.created_at`, limit, abandoned)
	hooks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Hook])
	if err != nil {
		return nil, fmt.Errorf("take messages to send: %w", err)
	}
	return hooks, nil
}

// SettleHook notes what became of a try. problem is empty where it was taken; final says that
// another try is of no use. A try that was taken over meanwhile changes nothing.
func (r *Room) SettleHook(ctx context.Context, tx tenants.SystemTx, h Hook, problem string, final bool) error {
	state, pause := "sent", time.Duration(0)
	switch {
	case problem != "" && (final || h.Attempt > len(pauses)):
		state = "failed"
	case problem != "":
		state, pause = "queued", pauses[h.Attempt-1]
	}
	_, err := tx.Exec(ctx, `
		UPDATE notice_hooks SET state = $4, last_error = $5, next_try_at = now() + $6::interval, ended_at = CASE WHEN $4 = 'queued' THEN NULL ELSE now() END
		WHERE tenant_id = $1 AND id = $2 AND state = 'sending' AND attempt = $3`, h.Tenant, h.ID, h.Attempt, state, problem, pause)
	if err != nil {
		return fmt.Errorf("note what became of a message: %w", err)
	}
	return nil
}

// Hooks lists the newest messages of a pipeline.
func Hooks(ctx context.Context, tx tenants.Tx, of pipeline.ID, limit int) ([]HookLine, error) {
	rows, _ := tx.Query(ctx, `
		SELECT id, state, attempt, last_error, next_try_at, created_at, ended_at FROM notice_hooks
		WHERE tenant_id = $1 AND pipeline_id = $2 ORDER BY id DESC LIMIT $3`, tx.Tenant, of, limit)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[HookLine])
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return found, nil
}

// HookKey is the key that messages of a pipeline are signed with.
func HookKey(secret tenants.Secret, of pipeline.ID, generation int) []byte {
	key := secret.Derive("notice hook", of, generation)
	return key[:]
}

// HookSecret is the key as the receiving side is given it.
func HookSecret(secret tenants.Secret, of pipeline.ID, generation int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(HookKey(secret, of, generation))
}
