package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// starting is a start among others of its tenant. What refuses it alone is in err.
type starting struct {
	StartRequest
	started Started
	err     error

	version pipeline.Version
	name    string
}

// startsTogether is how many starts from the front of the line go into one transaction. Of
// two with the same key the second must see what the first did.
func startsTogether(line []*member[*starting]) int {
	keys, bytes := map[string]bool{}, 0
	for n, m := range line {
		if n == joined || bytes > joinedBytes || keys[m.what.Key] {
			return n
		}
		keys[m.what.Key] = true
		bytes += m.what.size()
	}
	return len(line)
}

// size is how many bytes a start brings.
func (s *starting) size() int {
	bytes := len(s.Input)
	for _, file := range s.Files {
		bytes += len(file.Data)
	}
	return bytes
}

// startTogether begins runs in a transaction of their own.
func (e *Engine) startTogether(ctx context.Context, tenant tenants.ID, all []*starting) error {
	return e.DB.InTx(ctx, tenant, func(ctx context.Context, tx tenants.Tx) error { return e.startAll(ctx, tx, all) })
}

// startAll begins runs, each with a key of its own. Its error makes the transaction void;
// a start that is refused for itself says so in its own. Starts of a pipeline wait for each
// other from the count of its runs to the commit, so that comes last and in one round trip;
// who must be counted, for a limit or near the quota, is written before the next is.
func (e *Engine) startAll(ctx context.Context, tx tenants.Tx, all []*starting) error {
	fresh, err := lookBefore(ctx, tx, all)
	if err != nil {
		return err
	}
	sheet := newStartSheet(tx)
	for _, one := range fresh {
		how, err := e.mayStart(ctx, tx, sheet, one)
		if one.err = refusal(err); one.err == nil && err != nil {
			return err
		}
		if err == nil {
			if err := sheet.add(one, how); err != nil {
				return err
			}
		}
	}
	if err := sheet.write(ctx); err != nil {
		return err
	}
	tx.AfterCommit(e.nudge)
	return nil
}

// mayStart says how a run begins its life. Whatever has to be counted for that, the sheet
// is written before.
func (e *Engine) mayStart(ctx context.Context, tx tenants.Tx, sheet *startSheet, one *starting) (entry, error) {
	var err error
	if one.name, err = runName(ctx, one.version.Program, one.name, one.Input); err != nil {
		return entry{}, err
	}
	limit := one.version.Document.Concurrency
	if limit != nil || !e.openRuns.isFar(tx.Tenant, time.Now()) {
		if err := sheet.write(ctx); err != nil {
			return entry{}, err
		}
	}
	if err := e.checkOpenRuns(ctx, tx); err != nil {
		return entry{}, err
	}
	if limit != nil {
		if _, err := pipeline.Lock(ctx, tx, one.Pipeline); err != nil {
			return entry{}, err
		}
	}
	return e.admit(ctx, tx, one.Pipeline, limit)
}

// refusal is the error if it concerns one start only and leaves the transaction sound.
func refusal(err error) error {
	var tooMany *TooManyRuns
	if errors.Is(err, pipeline.ErrNotFound) || errors.Is(err, ErrNotLive) || errors.As(err, &tooMany) {
		return err
	}
	return nil
}

// lookBefore gives the starts that no earlier one with their key has done, with the
// versions that they run.
func lookBefore(ctx context.Context, tx tenants.Tx, all []*starting) ([]*starting, error) {
	keys := make([]string, len(all))
	lives := map[pipeline.ID]*pipeline.Live{}
	batch := &tenants.Batch{ByKey: true}
	for n, one := range all {
		one.started, one.err = Started{}, nil
		keys[n] = one.Key
	}
	queueKeyLocks(batch, tx.Tenant, keys...)
	queueEarlier(batch, tx.Tenant, all, keys)
	for _, one := range all {
		if lives[one.Pipeline] == nil {
			lives[one.Pipeline] = pipeline.QueueLive(batch, tx.Tenant, one.Pipeline)
		}
	}
	if err := tx.Send(ctx, batch); err != nil {
		return nil, fmt.Errorf("look before a start: %w", err)
	}
	if err := freeOldKeys(ctx, tx, all); err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(slices.Clone(all), (*starting).startedBefore)
	for _, one := range fresh {
		if err := one.read(ctx, tx, *lives[one.Pipeline]); refusal(err) == nil && err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(fresh, func(one *starting) bool { return one.err != nil }), nil
}

// queueKeyLocks makes a second start with the same key wait for the first, instead of
// failing on the unique key.
func queueKeyLocks(b *tenants.Batch, tenant tenants.ID, keys ...string) {
	b.Queue(`
		SELECT pg_advisory_xact_lock(k.lock) FROM (
			SELECT hashtextextended($1 || key, 0) AS lock FROM unnest($2::text[]) AS g (key) ORDER BY 1) k`, tenant.String(), keys)
}

// queueEarlier asks for the runs that earlier starts with the same keys began.
func queueEarlier(b *tenants.Batch, tenant tenants.ID, all []*starting, keys []string) {
	b.Queue(`
		SELECT g.place, `+runColumns+` FROM unnest($2::text[]) WITH ORDINALITY AS g (key, place)
		CROSS JOIN LATERAL (SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.start_key = g.key OFFSET 0) r `+runJoins,
		tenant, keys).Query(func(rows pgx.Rows) error {
		return eachPlaced(rows, func(place int, run Run) { all[place-1].started = Started{Run: run, Before: true} })
	})
}

// read takes the version that runs.
func (s *starting) read(ctx context.Context, tx tenants.Tx, live pipeline.Live) error {
	switch {
	case !live.Found:
		s.err = pipeline.ErrNotFound
		return s.err
	case live.Version == 0:
		s.err = ErrNotLive
		return s.err
	}
	var err error
	s.name = live.Name
	s.version, err = pipeline.VersionByNumber(ctx, tx, s.Pipeline, live.Version)
	return err
}
