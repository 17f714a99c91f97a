package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// maxUndo is how many changes of a draft can be undone.
const maxUndo = 50

// Draft is a pipeline with its draft, and with what can be undone and redone.
type Draft struct {
	Pipeline
	ChangedAt time.Time
	ChangedBy string // name; empty where nobody is known
	Undo      string // what Undo would take back; empty: nothing
	Redo      string // what Redo would do again; empty: nothing
}

// Edit is one change of a draft.
type Edit struct {
	Key string // one-time key of the form: the same key again changes nothing
	By  tenants.UserID
	// Change makes the new draft of the old one, and says in a few words what it did, such
	// as “Removed “Draft reply””. step is the step that it was about; empty for none.
	Change func(Document) (changed Document, says, step string, err error)
}

// ErrDraftMoved tells that the draft was changed since a form was drawn, where the form is
// about the whole of it.
var ErrDraftMoved = errors.New("the draft was changed since")

// ReadDraft reads a pipeline's draft.
func ReadDraft(ctx context.Context, tx tenants.Tx, id ID) (Draft, error) {
	one, err := ByID(ctx, tx, id)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Pipeline: one}
	err = tx.QueryRow(ctx, `
		SELECT p.drafted_at, coalesce(u.name, ''),
			coalesce((SELECT e.says FROM draft_edits e WHERE e.tenant_id = p.tenant_id AND e.pipeline_id = p.id AND NOT e.undone ORDER BY e.number DESC LIMIT 1), ''),
			coalesce((SELECT e.says FROM draft_edits e WHERE e.tenant_id = p.tenant_id AND e.pipeline_id = p.id AND e.undone ORDER BY e.number LIMIT 1), '')
		FROM pipelines p LEFT JOIN users u ON u.id = p.draft_by WHERE p.tenant_id = $1 AND p.id = $2`, tx.Tenant, id).
		Scan(&d.ChangedAt, &d.ChangedBy, &d.Undo, &d.Redo)
	if err != nil {
		return Draft{}, fmt.Errorf("read a draft: %w", err)
	}
	return d, nil
}

// EditDraft changes the draft and keeps what it was, so that it can be undone. What could
// not be listed or read back is refused with an *Invalid; every other problem of a draft
// may wait until it is published. step is the one that the edit was about, also where the
// form came a second time.
func EditDraft(ctx context.Context, tx tenants.Tx, id ID, e Edit) (step string, err error) {
	one, err := Lock(ctx, tx, id)
	switch {
	case err != nil:
		return "", err
	case one.Unread != nil:
		return "", one.Unread
	}
	err = tx.QueryRow(ctx, `SELECT step FROM draft_edits WHERE tenant_id = $1 AND pipeline_id = $2 AND key = $3`, tx.Tenant, id, e.Key).Scan(&step)
	if !errors.Is(err, pgx.ErrNoRows) {
		return step, err
	}
	changed, says, step, err := e.Change(one.Draft)
	if err != nil {
		return "", err
	}
	if err := storable(changed); err != nil {
		return "", err
	}
	before, after := string(one.Draft.JSON()), string(changed.JSON())
	if before == after {
		return step, nil
	}
	return step, keepEdit(ctx, tx, id, e, cut(oneLine(says), maxSays), step, changed.Name, before, after)
}

// maxSays bounds what an edit says, in characters.
const maxSays = 300

// keepEdit writes the draft, and the edit with what was before. What was undone cannot be
// redone behind it.
func keepEdit(ctx context.Context, tx tenants.Tx, id ID, e Edit, says, step, name, before, after string) error {
	batch := &tenants.Batch{}
	batch.Queue(`DELETE FROM draft_edits WHERE tenant_id = $1 AND pipeline_id = $2 AND undone`, tx.Tenant, id)
	batch.Queue(`
		INSERT INTO draft_edits (tenant_id, pipeline_id, number, key, says, step, document, made_by, made_at)
		SELECT tenant_id, id, draft_revision + 1, $3, $4, $5, $6, $7, $8 FROM pipelines WHERE tenant_id = $1 AND id = $2`,
		tx.Tenant, id, e.Key, says, step, before, e.By, tx.Now)
	batch.Queue(`
		DELETE FROM draft_edits WHERE tenant_id = $1 AND pipeline_id = $2 AND number <= (
			SELECT number FROM draft_edits WHERE tenant_id = $1 AND pipeline_id = $2 ORDER BY number DESC OFFSET $3 LIMIT 1)`, tx.Tenant, id, maxUndo)
	queueDraft(batch, tx, id, name, after, e.By)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("edit a draft: %w", err)
	}
	return nil
}

func queueDraft(batch *tenants.Batch, tx tenants.Tx, id ID, name, document string, by tenants.UserID) {
	batch.Guarded(`
		UPDATE pipelines SET name = $3, draft = $4, draft_by = $5, drafted_at = $6, draft_revision = draft_revision + 1
		WHERE tenant_id = $1 AND id = $2 RETURNING 1`, tx.Tenant, id, name, document, by, tx.Now)
}

// SaveDraft replaces the draft as a whole, as an edit that can be undone.
func SaveDraft(ctx context.Context, tx tenants.Tx, id ID, draft Document, by tenants.UserID) error {
	_, err := EditDraft(ctx, tx, id, Edit{Key: tenants.NewID[Edit]().String(), By: by, Change: func(Document) (Document, string, string, error) {
		return draft, "Changed the draft", "", nil
	}})
	return err
}

// UndoDraft takes the newest edit back, RedoDraft does the one again that was taken back
// last. Both are for the draft at a revision: what was changed since is not undone by
// somebody who has not seen it. step is the one that the edit was about.
func UndoDraft(ctx context.Context, tx tenants.Tx, id ID, seen int64, by tenants.UserID) (step string, err error) {
	return swapDraft(ctx, tx, id, seen, by, `SELECT number, step, document FROM draft_edits
		WHERE tenant_id = $1 AND pipeline_id = $2 AND NOT undone ORDER BY number DESC LIMIT 1`)
}

// RedoDraft is described at UndoDraft.
func RedoDraft(ctx context.Context, tx tenants.Tx, id ID, seen int64, by tenants.UserID) (step string, err error) {
	return swapDraft(ctx, tx, id, seen, by, `SELECT number, step, document FROM draft_edits
		WHERE tenant_id = $1 AND pipeline_id = $2 AND undone ORDER BY number LIMIT 1`)
}

// swapDraft changes places between the draft and what an edit keeps: what was before it
// while it is done, what came of it while it is undone.
func swapDraft(ctx context.Context, tx tenants.Tx, id ID, seen int64, by tenants.UserID, which string) (step string, err error) {
	one, err := Lock(ctx, tx, id)
	switch {
	case err != nil:
		return "", err
	case one.Unread != nil:
		return "", one.Unread
	case one.Revision != seen:
		return "", ErrDraftMoved
	}
	var number int64
	var text string
	err = tx.QueryRow(ctx, which, tx.Tenant, id).Scan(&number, &step, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", badEdit("There is nothing left to undo or redo.")
	}
	if err != nil {
		return "", fmt.Errorf("read an edit: %w", err)
	}
	document, err := Parse([]byte(text))
	if err != nil {
		return "", err
	}
	batch := &tenants.Batch{}
	batch.Guarded(`
		UPDATE draft_edits SET undone = NOT undone, document = $4
		WHERE tenant_id = $1 AND pipeline_id = $2 AND number = $3 RETURNING 1`, tx.Tenant, id, number, string(one.Draft.JSON()))
	queueDraft(batch, tx, id, document.Name, text, by)
	if err := tx.Send(ctx, batch); err != nil {
		return "", fmt.Errorf("undo or redo an edit: %w", err)
	}
	return step, nil
}
