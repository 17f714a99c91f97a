package notice

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Settings say who is told about the runs of a pipeline, and of what.
type Settings struct {
	Owner      tenants.UserID // zero: nobody
	Backup     tenants.UserID // zero: nobody
	Kinds      []Kind
	HookURL    string // where another system is told; empty: nowhere
	Generation int    // of the secret that it is told with
	Chosen     bool   // somebody chose them; else the publisher is told of everything
}

// SettingsOf reads who is told about a pipeline. Where nobody chose, whoever published the
// live version is told of everything.
func SettingsOf(ctx context.Context, tx tenants.Tx, of pipeline.ID) (Settings, error) {
	s := Settings{Chosen: true}
	var owner, backup *tenants.UserID
	err := tx.QueryRow(ctx, `
		SELECT owner_id, backup_id, kinds, hook_url, hook_generation FROM notice_settings WHERE tenant_id = $1 AND pipeline_id = $2`,
		tx.Tenant, of).Scan(&owner, &backup, &s.Kinds, &s.HookURL, &s.Generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return usual(ctx, tx, of)
	}
	if err != nil {
		return s, fmt.Errorf("read who is told: %w", err)
	}
	if owner != nil {
		s.Owner = *owner
	}
	if backup != nil {
		s.Backup = *backup
	}
	return s, nil
}

// Recipients are the people who get a mail: owner and backup, or the owners of the workspace
// where these have left it.
func Recipients(ctx context.Context, tx tenants.Tx, s Settings) ([]tenants.User, error) {
	members, err := tenants.Members(ctx, tx)
	if err != nil {
		return nil, err
	}
	var named, owners []tenants.User
	for _, member := range members {
		if member.User.ID == s.Owner || member.User.ID == s.Backup {
			named = append(named, member.User)
		}
		if member.Role == tenants.Owner {
			owners = append(owners, member.User)
		}
	}
	if len(named) == 0 && !(s.Owner.IsZero() && s.Backup.IsZero()) {
		return owners, nil
	}
	return named, nil
}

// usual are the settings of a pipeline for which nobody chose any.
func usual(ctx context.Context, tx tenants.Tx, of pipeline.ID) (Settings, error) {
	s := Settings{Kinds: Kinds(), Generation: 1}
	one, err := pipeline.ByID(ctx, tx, of)
	if err != nil || one.Live == 0 {
		return s, err
	}
	version, err := pipeline.VersionByNumber(ctx, tx, of, one.Live)
	s.Owner = version.PublishedBy
	return s, err
}

// Save changes who is told. The error for what cannot be is a *tenants.Invalid.
func Save(ctx context.Context, tx tenants.Tx, of pipeline.ID, s Settings, by tenants.Membership) error {
	if err := s.check(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO notice_settings AS n (tenant_id, pipeline_id, owner_id, backup_id, kinds, hook_url) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, pipeline_id) DO UPDATE SET owner_id = $3, backup_id = $4, kinds = $5, hook_url = $6, changed_at = now()`,
		tx.Tenant, of, orNobody(s.Owner), orNobody(s.Backup), s.Kinds, s.HookURL)
	if err != nil {
		return fmt.Errorf("change who is told: %w", err)
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "pipeline.told_changed", Target: tenants.Target{Kind: "pipeline", ID: of},
		Detail: map[string]any{"owner": s.Owner, "backup": s.Backup, "kinds": s.Kinds, "hook": s.HookURL != ""},
	})
}

// Renew makes a new secret for messages to another system; those under way keep theirs.
func Renew(ctx context.Context, tx tenants.Tx, of pipeline.ID, by tenants.Membership) error {
	tag, err := tx.Exec(ctx, `UPDATE notice_settings SET hook_generation = hook_generation + 1 WHERE tenant_id = $1 AND pipeline_id = $2`, tx.Tenant, of)
	if err != nil {
		return fmt.Errorf("renew a secret: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return &tenants.Invalid{Field: "hook", Message: "Nothing is sent yet. Save an address first."}
	}
	return tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(by), Action: "pipeline.hook_secret_renewed", Target: tenants.Target{Kind: "pipeline", ID: of},
	})
}

func orNobody(id tenants.UserID) *tenants.UserID {
	if id.IsZero() {
		return nil
	}
	return &id
}

// maxURL bounds an address, in bytes.
const maxURL = 2000

func (s *Settings) check(ctx context.Context, tx tenants.Tx) error {
	for field, id := range map[string]tenants.UserID{"owner": s.Owner, "backup": s.Backup} {
		if id.IsZero() {
			continue
		}
		if _, err := tenants.MemberByUser(ctx, tx, id); errors.Is(err, tenants.ErrNotMember) {
			return &tenants.Invalid{Field: field, Message: "This person is not in the workspace. Choose somebody who is."}
		} else if err != nil {
			return err
		}
	}
	if !s.Backup.IsZero() && s.Backup == s.Owner {
		return &tenants.Invalid{Field: "backup", Message: "Owner and backup are the same person. Choose two, or nobody as backup."}
	}
	for _, kind := range s.Kinds {
		if !slices.Contains(Kinds(), kind) {
			return &tenants.Invalid{Field: "kinds", Message: "Choose from what is offered."}
		}
	}
	s.HookURL = strings.TrimSpace(s.HookURL)
	if s.HookURL == "" {
		return nil
	}
	address, err := url.Parse(s.HookURL)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" || address.User != nil || len(s.HookURL) > maxURL {
		return &tenants.Invalid{Field: "hook", Message: "Enter a whole address like https://example.com/hooks, without a name or password in it."}
	}
	return nil
}
