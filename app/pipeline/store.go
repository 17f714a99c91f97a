package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/tenants"
)

// ID identifies a pipeline.
type ID = tenants.IDOf[Pipeline]

// Pipeline is a definition that a tenant owns: a draft that is edited, and versions
// that were published.
type Pipeline struct {
	ID        ID
	Name      string
	Template  string // slug of the template it was made from; empty otherwise
	Draft     Document
	Revision  int64 // grows with each change of the draft
	Unread    error // why the stored draft cannot be read; Draft then has the name only
	Live      int   // the version that new runs take; 0 before the first is published
	Runs      int64
	CreatedAt time.Time
}

// Version is what was published: it never changes, and runs are pinned to it.
type Version struct {
	Pipeline    ID
	Number      int
	Document    Document
	Program     *Program
	Note        string
	PublishedBy tenants.UserID
	PublishedAt time.Time
}

// ErrNotFound tells that the tenant has no such pipeline or version.
var ErrNotFound = errors.New("no such pipeline")

// Create stores a new pipeline with its draft. A draft without a name that can be
// listed is refused with an *Invalid, as by SaveDraft.
func Create(ctx context.Context, tx tenants.Tx, draft Document, template string, by tenants.UserID) (ID, error) {
	if err := storable(draft); err != nil {
		return ID{}, err
	}
	id := tenants.NewID[Pipeline]()
	_, err := tx.Exec(ctx, `
		INSERT INTO pipelines (tenant_id, id, name, template, draft, draft_by, drafted_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7)`,
		tx.Tenant, id, draft.Name, template, string(draft.JSON()), by, tx.Now)
	if err != nil {
		return ID{}, fmt.Errorf("create a pipeline: %w", err)
	}
	return id, nil
}

// storable refuses what could not be listed or read back. Every other problem of a
// draft may wait until it is published.
func storable(draft Document) error {
	c := checker{doc: &draft}
	c.label(nil, "name", "The pipeline", draft.Name, true)
	if len(c.problems) > 0 {
		return &Invalid{c.problems}
	}
	_, err := Parse(draft.JSON())
	return err
}

// Publish makes the draft the next version and the live one, under the number of rules
// that its kinds of steps need. A draft with blocking problems is refused with an
// *Invalid that lists them.
func Publish(ctx context.Context, tx tenants.Tx, id ID, note string, by tenants.UserID) (int, error) {
	var text string
	var last int
	err := tx.QueryRow(ctx, `
		SELECT draft, (SELECT coalesce(max(number), 0) FROM pipeline_versions v WHERE v.tenant_id = p.tenant_id AND v.pipeline_id = p.id)
		FROM pipelines p WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tx.Tenant, id).Scan(&text, &last)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("read a draft: %w", err)
	}
	document, err := Parse([]byte(text))
	if err != nil {
		return 0, err
	}
	problems, err := CheckIn(ctx, tx, document)
	if err != nil {
		return 0, err
	}
	if blocking := Blocking(problems); len(blocking) > 0 {
		return 0, &Invalid{Problems: blocking}
	}
	document = document.Active()
	document.Semantics = max(document.Semantics, document.needs())
	return last + 1, insertVersion(ctx, tx, id, last+1, document, note, by)
}

func insertVersion(ctx context.Context, tx tenants.Tx, id ID, number int, document Document, note string, by tenants.UserID) error {
	text := document.JSON()
	digest := sha256.Sum256(text)
	batch := &tenants.Batch{}
	batch.Queue(`
		INSERT INTO pipeline_versions (tenant_id, pipeline_id, number, document, digest, semantics, note, published_by, published_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		tx.Tenant, id, number, string(text), digest[:], document.Semantics, note, by, tx.Now)
	batch.Guarded(`UPDATE pipelines SET live_version = $3 WHERE tenant_id = $1 AND id = $2 RETURNING 1`, tx.Tenant, id, number)
	if err := tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("publish a version: %w", err)
	}
	return nil
}

const pipelineColumns = `id, name, template, draft, draft_revision, coalesce(live_version, 0), run_count, created_at`

// ByID reads a pipeline.
func ByID(ctx context.Context, tx tenants.Tx, id ID) (Pipeline, error) {
	rows, err := tx.Query(ctx, `SELECT `+pipelineColumns+` FROM pipelines WHERE tenant_id = $1 AND id = $2`, tx.Tenant, id)
	if err != nil {
		return Pipeline{}, fmt.Errorf("read a pipeline: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPipeline)
	if errors.Is(err, pgx.ErrNoRows) {
		return Pipeline{}, ErrNotFound
	}
	return p, err
}

// Lock reads a pipeline and keeps others from publishing it, and from saving its draft,
// until the transaction ends.
func Lock(ctx context.Context, tx tenants.Tx, id ID) (Pipeline, error) {
	if _, err := tx.Exec(ctx, `SELECT 1 FROM pipelines WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tx.Tenant, id); err != nil {
		return Pipeline{}, fmt.Errorf("lock a pipeline: %w", err)
	}
	return ByID(ctx, tx, id)
}

// LockTemplate keeps others from making a pipeline of a template in this tenant until the
// transaction ends, so that whoever looks first makes the only one.
func LockTemplate(ctx context.Context, tx tenants.Tx, slug string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('template ' || $1 || $2, 0))`, tx.Tenant.String(), slug)
	if err != nil {
		return fmt.Errorf("lock a template: %w", err)
	}
	return nil
}

// List reads all pipelines of the tenant, by name.
func List(ctx context.Context, tx tenants.Tx) ([]Pipeline, error) {
	rows, err := tx.Query(ctx, `SELECT `+pipelineColumns+` FROM pipelines WHERE tenant_id = $1 ORDER BY name, id`, tx.Tenant)
	if err != nil {
		return nil, fmt.Errorf("list pipelines: %w", err)
	}
	return pgx.CollectRows(rows, scanPipeline)
}

func scanPipeline(row pgx.CollectableRow) (Pipeline, error) {
	var p Pipeline
	var draft string
	if err := row.Scan(&p.ID, &p.Name, &p.Template, &draft, &p.Revision, &p.Live, &p.Runs, &p.CreatedAt); err != nil {
		return p, err
	}
	// One draft that an older build wrote must not take the whole list with it.
	if p.Draft, p.Unread = Parse([]byte(draft)); p.Unread != nil {
		p.Draft = Document{Semantics: Semantics, Name: p.Name}
	}
	return p, nil
}

// Live names a pipeline and the number of its live version, 0 for none.
type Live struct {
	Found   bool
	Name    string
	Version int
}

// QueueLive asks for the pipeline's live version; the answer is there once the batch was
// sent.
func QueueLive(b *tenants.Batch, tenant tenants.ID, id ID) *Live {
	live := &Live{}
	b.Queue(`SELECT name, coalesce(live_version, 0) FROM pipelines WHERE tenant_id = $1 AND id = $2`, tenant, id).
		Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&live.Name, &live.Version}, func() error {
				live.Found = true
				return nil
			})
			return err
		})
	return live
}

// QueueRunNumbers counts so many new runs of the pipeline: their numbers are the last of
// the pipeline's count of runs. The row stays locked until the transaction ends, so it is
// asked for late.
func QueueRunNumbers(b *tenants.Batch, tenant tenants.ID, id ID, runs int) {
	b.Guarded(`UPDATE pipelines SET run_count = run_count + $3 WHERE tenant_id = $1 AND id = $2 RETURNING 1`, tenant, id, runs)
}
