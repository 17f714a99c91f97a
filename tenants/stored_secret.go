package tenants

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// StoredSecret is a key or password of another system that steps use by its name. Its
// value is written and replaced, and never shown.
type StoredSecret struct {
	ID         StoredSecretID
	Name       string
	Hint       string   // what people recognise the value by; may be empty
	Hosts      []string // that it may be sent to; empty: any
	AddedBy    string
	AddedAt    time.Time
	ReplacedBy string // empty: never replaced
	ReplacedAt *time.Time
}

// StoredSecretID identifies a stored secret.
type StoredSecretID = IDOf[StoredSecret]

// ErrNoSecret tells that the workspace has no such secret.
var ErrNoSecret = errors.New("no such secret")

// Bounds of a secret's value, in bytes. A shorter one could not be told from ordinary
// text, and so not be masked where the other side repeats it.
const (
	minSecretValue = 6
	maxSecretValue = 16 << 10
	maxHosts       = 20
)

const secretColumn = "sealed"

var (
	secretNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$`)
	hostForm       = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:[0-9]{1,5})?$`)
)

// ValidSecretName tells whether a secret may be called so: letters, digits, spaces and
// . _ -, beginning with a letter or digit, at most 60.
func ValidSecretName(name string) bool { return secretNameForm.MatchString(name) }

// NewSecretValue is what a person entered for a secret.
type NewSecretValue struct {
	Name  string // ignored where a secret is replaced
	Value string
	Hosts []string // host or host:port
}

// cleaned takes what a person entered; the error is an *Invalid, which never repeats the
// value.
func (n NewSecretValue) cleaned() (NewSecretValue, error) {
	n.Name, n.Value = strings.TrimSpace(n.Name), strings.TrimSpace(n.Value)
	switch {
	case n.Value == "":
		return n, &Invalid{"value", "Enter the secret itself."}
	case len(n.Value) < minSecretValue:
		return n, &Invalid{"value", fmt.Sprintf("A secret has at least %d characters. A shorter one could not be kept out of answers that repeat it.", minSecretValue)}
	case len(n.Value) > maxSecretValue:
		return n, &Invalid{"value", "A secret can have up to 16 KB."}
	case !utf8.ValidString(n.Value) || strings.ContainsFunc(n.Value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return n, &Invalid{"value", "A secret is one line of plain text. Copy it again, without line breaks."}
	}
	var hosts []string
	for _, host := range n.Hosts {
		host = strings.ToLower(strings.TrimSpace(host))
		if host == "" {
			continue
		}
		if !hostForm.MatchString(host) {
			return n, &Invalid{"hosts", "Write hosts by their names alone, such as api.example.com."}
		}
		hosts = append(hosts, host)
	}
	if len(hosts) > maxHosts {
		return n, &Invalid{"hosts", fmt.Sprintf("At most %d hosts are possible.", maxHosts)}
	}
	slices.Sort(hosts)
	n.Hosts = slices.Compact(hosts)
	return n, nil
}

// hint is the end of a value that is long enough to keep the rest secret.
func (n NewSecretValue) hint() string {
	runes := []rune(n.Value)
	if len(runes) < 16 {
		return ""
	}
	return "…" + string(runes[len(runes)-4:])
}

// AddSecret stores a secret under a new name. What a person got wrong is an *Invalid.
func AddSecret(ctx context.Context, tx Tx, vault Vault, given NewSecretValue, by Membership) (StoredSecretID, error) {
	given, err := given.cleaned()
	if err != nil {
		return StoredSecretID{}, err
	}
	if !ValidSecretName(given.Name) {
		return StoredSecretID{}, &Invalid{"name", "Give the secret a name of letters, digits, spaces and . _ -, at most 60, such as ERP key."}
	}
	id := NewID[StoredSecret]()
	sealed, err := vault.Seal(tx.Tenant, id, secretColumn, []byte(given.Value))
	if err != nil {
		return id, err
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO tenant_secrets (tenant_id, id, name, sealed, key_id, hint, hosts, added_by, added_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (tenant_id, name) DO NOTHING`,
		tx.Tenant, id, given.Name, sealed, vault.KeyID(), given.hint(), texts(given.Hosts), by.User.Name, tx.Now)
	if err != nil {
		return id, fmt.Errorf("add a secret: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return id, &Invalid{"name", "There is a secret of this name already. Replace that one, or choose another name."}
	}
	return id, auditSecret(ctx, tx, "secret.added", id, given.Name, by)
}

// texts is a list for Postgres, where none is empty and not null.
func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ReplaceSecret gives a secret another value; steps use it from their next call on.
func ReplaceSecret(ctx context.Context, tx Tx, vault Vault, id StoredSecretID, given NewSecretValue, by Membership) error {
	given, err := given.cleaned()
	if err != nil {
		return err
	}
	sealed, err := vault.Seal(tx.Tenant, id, secretColumn, []byte(given.Value))
	if err != nil {
		return err
	}
	var name string
	err = tx.QueryRow(ctx, `
		UPDATE tenant_secrets SET sealed = $3, key_id = $4, hint = $5, hosts = $6, replaced_by = $7, replaced_at = $8
		WHERE tenant_id = $1 AND id = $2 RETURNING name`,
		tx.Tenant, id, sealed, vault.KeyID(), given.hint(), texts(given.Hosts), by.User.Name, tx.Now).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoSecret
	}
	if err != nil {
		return fmt.Errorf("replace a secret: %w", err)
	}
	return auditSecret(ctx, tx, "secret.replaced", id, name, by)
}

// DeleteSecret removes a secret; steps that use it fail from then on and say so.
func DeleteSecret(ctx context.Context, tx Tx, id StoredSecretID, by Membership) error {
	var name string
	err := tx.QueryRow(ctx, `DELETE FROM tenant_secrets WHERE tenant_id = $1 AND id = $2 RETURNING name`, tx.Tenant, id).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoSecret
	}
	if err != nil {
		return fmt.Errorf("delete a secret: %w", err)
	}
	return auditSecret(ctx, tx, "secret.deleted", id, name, by)
}

func auditSecret(ctx context.Context, tx Tx, action string, id StoredSecretID, name string, by Membership) error {
	return Audit(ctx, tx, Entry{Actor: ByMember(by), Action: action, Target: Target{"secret", id}, Detail: map[string]any{"name": name}})
}

// StoredSecrets lists the workspace's secrets by name, without their values.
func StoredSecrets(ctx context.Context, tx Tx) ([]StoredSecret, error) {
	rows, _ := tx.Query(ctx, `
		SELECT id, name, hint, hosts, added_by, added_at, replaced_by, replaced_at
		FROM tenant_secrets WHERE tenant_id = $1 ORDER BY lower(name), id`, tx.Tenant)
	secrets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoredSecret])
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	return secrets, nil
}

// OpenedSecret is a secret that is about to be used.
type OpenedSecret struct {
	Value string
	Hosts []string // that it may be sent to; empty: any
}

// MayGoTo tells whether the secret may be sent to a host, given as it stands in an
// address and with the port that is meant there.
func (o OpenedSecret) MayGoTo(host, withPort string) bool {
	host, withPort = strings.ToLower(host), strings.ToLower(withPort)
	return len(o.Hosts) == 0 || slices.Contains(o.Hosts, host) || slices.Contains(o.Hosts, withPort)
}

// OpenSecret reads a secret by its name, for a call that is about to be made. It returns
// ErrNoSecret for one that the workspace does not have, and ErrSealed for one that was
// stored under another server secret.
func OpenSecret(ctx context.Context, tx Tx, vault Vault, name string) (OpenedSecret, error) {
	var id StoredSecretID
	var sealed []byte
	var opened OpenedSecret
	err := tx.QueryRow(ctx, `SELECT id, sealed, hosts FROM tenant_secrets WHERE tenant_id = $1 AND name = $2`, tx.Tenant, name).
		Scan(&id, &sealed, &opened.Hosts)
	if errors.Is(err, pgx.ErrNoRows) {
		return opened, ErrNoSecret
	}
	if err != nil {
		return opened, fmt.Errorf("read a secret: %w", err)
	}
	value, err := vault.Open(tx.Tenant, id, secretColumn, sealed)
	opened.Value = string(value)
	return opened, err
}

// String hides the value, whatever prints it.
func (o OpenedSecret) String() string { return masked }

// GoString hides the value from %#v.
func (o OpenedSecret) GoString() string { return masked }
