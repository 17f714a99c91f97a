package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// AuditEntry marks the identities of entries in the audit log.
type AuditEntry struct{}

// AuditID identifies an entry; later entries have greater ids.
type AuditID = IDOf[AuditEntry]

// ActorKind tells how somebody acted.
type ActorKind string

// The kinds of actors: a signed-in member, whoever holds a link that we sent to one
// person, and the product itself.
const (
	ActorMember ActorKind = "member"
	ActorLink   ActorKind = "link"
	ActorSystem ActorKind = "system"
)

// Actor is who did something. The name is kept with the entry, since people leave and
// change their names.
type Actor struct {
	Kind ActorKind
	ID   [16]byte // a user's id, a seat's id, or unset for the system
	Name string
}

// ByMember is a signed-in member as an actor.
func ByMember(m Membership) Actor { return Actor{ActorMember, m.User.ID, m.User.Name} }

// ByLink is the holder of a link as an actor: the seat it was sent for, and whom to.
func ByLink(seat [16]byte, name string) Actor { return Actor{ActorLink, seat, name} }

// BySystem is a part of the product as an actor, named as people would call it: "the
// deadline of the review".
func BySystem(name string) Actor { return Actor{ActorSystem, [16]byte{}, name} }

// Target is what an action was done to.
type Target struct {
	Kind string   // "run", "pipeline", "member"
	ID   [16]byte // unset when the thing has no id
}

// Entry is one line of the audit log: who did what to what. ID and At are set by the
// log.
type Entry struct {
	ID     AuditID
	At     time.Time
	Actor  Actor
	Action string // noun and past verb: "run.cancelled"
	Target Target
	Detail map[string]any // what else to know, as JSON; up to 16 KiB
}

const (
	maxDetail    = 16 << 10
	maxActorName = 1 << 10
	maxAuditPage = 200
)

const insertEntry = `INSERT INTO audit_entries
	(tenant_id, id, actor_kind, actor_id, actor_name, action, target_kind, target_id, detail)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// Audit adds an entry to the tenant's log, in the transaction of the change it tells.
func Audit(ctx context.Context, tx Tx, entry Entry) error {
	return audit(ctx, tx, tx.Tenant, entry)
}

// AuditSystem is Audit for work that comes before the tenant is known.
func AuditSystem(ctx context.Context, stx SystemTx, tenant ID, entry Entry) error {
	return audit(ctx, stx, tenant, entry)
}

// QueueAudit is Audit as part of a batch.
func QueueAudit(b *Batch, tenant ID, entry Entry) error {
	args, err := entry.columns(tenant)
	if err != nil {
		return err
	}
	b.Queue(insertEntry, args...)
	return nil
}

// AuditOf reads the newest entries about a target, newest first: those older than the
// entry before, or from the newest when before is unset. One page has 200.
func AuditOf(ctx context.Context, tx Tx, target Target, before AuditID) ([]Entry, error) {
	rows, _ := tx.Query(ctx, `
		SELECT id, at, actor_kind, actor_id, actor_name, action, target_kind, target_id, detail
		FROM audit_entries
		WHERE tenant_id = $1 AND target_kind = $2 AND target_id IS NOT DISTINCT FROM $3 AND ($4::uuid IS NULL OR id < $4)
		ORDER BY id DESC LIMIT $5`,
		tx.Tenant, target.Kind, IDOf[any](target.ID), before, maxAuditPage)
	entries, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return entries, nil
}

func audit(ctx context.Context, tx pgx.Tx, tenant ID, entry Entry) error {
	args, err := entry.columns(tenant)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertEntry, args...); err != nil {
		return fmt.Errorf("add to the audit log: %w", err)
	}
	return nil
}

var actionForm = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)

// columns makes the row. Text of people never makes it fail: names are made fit, a
// detail is JSON, which has a way to write every text.
func (e Entry) columns(tenant ID) ([]any, error) {
	if !actionForm.MatchString(e.Action) || e.Actor.Kind == "" || e.Target.Kind == "" {
		return nil, fmt.Errorf("audit entry %q: wants an action as noun.verb, an actor and a target", e.Action)
	}
	detail := []byte("{}")
	if len(e.Detail) > 0 {
		var err error
		if detail, err = json.Marshal(e.Detail); err != nil {
			return nil, fmt.Errorf("audit entry %q: write its detail: %w", e.Action, err)
		}
	}
	if len(detail) > maxDetail {
		return nil, fmt.Errorf("audit entry %q: its detail is %d bytes, the most is %d", e.Action, len(detail), maxDetail)
	}
	return []any{
		tenant, NewID[AuditEntry](), e.Actor.Kind, IDOf[any](e.Actor.ID), stripped(e.Actor.Name, maxActorName),
		e.Action, e.Target.Kind, IDOf[any](e.Target.ID), string(detail),
	}, nil
}

func scanEntry(row pgx.CollectableRow) (Entry, error) {
	var entry Entry
	var actor, target IDOf[any]
	var detail string
	err := row.Scan(&entry.ID, &entry.At, &entry.Actor.Kind, &actor, &entry.Actor.Name,
		&entry.Action, &entry.Target.Kind, &target, &detail)
	if err != nil {
		return Entry{}, err
	}
	entry.Actor.ID, entry.Target.ID = actor, target
	decoder := json.NewDecoder(strings.NewReader(detail))
	decoder.UseNumber() // amounts stay exact
	return entry, decoder.Decode(&entry.Detail)
}
