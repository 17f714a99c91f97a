package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// History is where the time of a run went, by step run and in order: every wait, open
// or over, and every try that ended.
type History struct {
	Waits    map[StepRunID][]Wait
	Attempts map[StepRunID][]Attempt
}

// HistoryOf reads the history of some steps of a run. What is not known has an empty one.
func HistoryOf(ctx context.Context, tx tenants.Tx, id RunID, steps []StepRunID) (History, error) {
	h := History{Waits: map[StepRunID][]Wait{}, Attempts: map[StepRunID][]Attempt{}}
	rows, _ := tx.Query(ctx, `
		SELECT `+waitColumns+` FROM waits
		WHERE tenant_id = $1 AND run_id = $2 AND step_run_id = ANY ($3) ORDER BY opened_at, id`, tx.Tenant, id, steps)
	waits, err := pgx.CollectRows(rows, scanWait)
	if err != nil {
		return h, fmt.Errorf("read the waits of a run: %w", err)
	}
	for _, wait := range waits {
		h.Waits[wait.StepRun] = append(h.Waits[wait.StepRun], wait)
	}
	rows, _ = tx.Query(ctx, `
		SELECT a.step_run_id, a.number, a.outcome, a.began_at, a.ended_at, a.failure, a.note,
			a.model, a.place, a.reask, a.followed, a.sent_digest, a.received_digest
		FROM step_runs s JOIN tries a ON a.tenant_id = s.tenant_id AND a.step_run_id = s.id
		WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.id = ANY ($3) ORDER BY a.began_at, a.number`, tx.Tenant, id, steps)
	var step StepRunID
	var a Attempt
	var failure, sent, received []byte
	_, err = pgx.ForEachRow(rows, []any{&step, &a.Number, &a.Outcome, &a.BeganAt, &a.EndedAt, &failure, &a.Note,
		&a.Model, &a.Place, &a.Reask, &a.Followed, &sent, &received}, func() error {
		a.Sent, a.Received = digestFrom(sent), digestFrom(received)
		var err error
		if a.Failure, err = failureFrom(failure); err != nil {
			return err
		}
		h.Attempts[step] = append(h.Attempts[step], a)
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("read the attempts of a run: %w", err)
	}
	return h, nil
}

// Preview is a stored value, or as much of its beginning as was asked for.
type Preview struct {
	Digest    Digest
	MediaType string
	Size      int64 // of the whole value, in bytes
	Bytes     []byte
}

// Whole tells whether nothing was left out.
func (p Preview) Whole() bool { return int64(len(p.Bytes)) == p.Size }

// PreviewOf reads at most most bytes of a value that the run refers to. Any other
// digest, also one of another run, is ErrNoValue.
func PreviewOf(ctx context.Context, tx tenants.Tx, run RunID, digest Digest, most int) (Preview, error) {
	p := Preview{Digest: digest}
	err := tx.QueryRow(ctx, `
		SELECT v.media_type, v.size, coalesce(substring(v.content FROM 1 FOR $4), (
			SELECT substring(c.content FROM 1 FOR $4) FROM stored_value_chunks c
			WHERE c.tenant_id = v.tenant_id AND c.digest = v.digest AND c.number = 0), '')
		FROM stored_values v JOIN run_values r ON r.tenant_id = v.tenant_id AND r.digest = v.digest
		WHERE v.tenant_id = $1 AND r.run_id = $2 AND v.digest = $3`,
		tx.Tenant, run, digest.bytes(), min(most, chunkSize)).Scan(&p.MediaType, &p.Size, &p.Bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, ErrNoValue
	}
	if err != nil {
		return p, fmt.Errorf("read the beginning of a value: %w", err)
	}
	return p, nil
}

// ValueOf reads a value whole that the run refers to. Any other digest, also one of
// another run, is ErrNoValue.
func ValueOf(ctx context.Context, tx tenants.Tx, run RunID, digest Digest) (Content, error) {
	var refers bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM run_values WHERE tenant_id = $1 AND digest = $2 AND run_id = $3)`,
		tx.Tenant, digest.bytes(), run).Scan(&refers)
	if err != nil {
		return Content{}, fmt.Errorf("look for a value of a run: %w", err)
	}
	if !refers {
		return Content{}, ErrNoValue
	}
	return Value(ctx, tx, digest)
}

// MaxCounted is where GroupSizes stops counting: beyond it people need no figure, and
// the page must not wait for one.
const MaxCounted = 10_000

// GroupSizes counts the runs of a filter in each group, "" for all of them, up to
// MaxCounted+1 each, whatever group and value the filter itself names.
func GroupSizes(ctx context.Context, tx tenants.Tx, filter Filter) (map[Group]int, error) {
	sizes := map[Group]int{}
	batch := &pgx.Batch{}
	filter.Find = ""
	for group := range groupConditions {
		filter.Group = group
		c, err := filter.choose(tx)
		if err != nil {
			return nil, err
		}
		where := c.where()
		if group == GroupOpen {
			where = strings.Replace(where, groupConditions[group], countedOpen, 1)
		}
		batch.Queue(fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM runs r WHERE %s LIMIT %d) counted`, where, MaxCounted+1), c.args...).QueryRow(func(row pgx.Row) error {
			var n int
			err := row.Scan(&n)
			sizes[group] = n
			return err
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	return sizes, nil
}

// MaxTries is how often a step of the node is tried, as its author or the default says.
func MaxTries(node *pipeline.Node) int {
	if node != nil && node.Step.Retry != nil {
		return node.Step.Retry.Attempts
	}
	return defaultTries
}
