package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// startSheet collects runs that begin, in columns, and writes them in one round trip.
type startSheet struct {
	tx     tenants.Tx
	starts []*starting // in the order of the columns

	ids              []RunID
	pipelines        []pipeline.ID
	versions         []int
	names, states    []string
	priorities       []int16
	samples          []bool
	inputs, failures [][]byte
	by               []tenants.UserID
	keys, endedBy    []string
	endedAt          []*time.Time

	values   valueRows
	search   searchRows
	born     []slice
	again    []startedAgain
	audits   []tenants.Entry
	uncapped []ledger.RunID // whose pipelines name no cap
	besides  tenants.Batch  // caps, and what is asked for of few runs
}

func newStartSheet(tx tenants.Tx) *startSheet { return &startSheet{tx: tx} }

// add takes a run up, with all that belongs to it. Its id is made here: behind the lock of
// its pipeline, where that has a limit, so that ids have the order of starts.
func (s *startSheet) add(one *starting, how entry) error {
	id := one.id
	if id.IsZero() {
		id = tenants.NewID[Run]()
	}
	s.starts = append(s.starts, one)
	s.ids, s.pipelines, s.versions = append(s.ids, id), append(s.pipelines, one.Pipeline), append(s.versions, one.version.Number)
	s.names, s.states, s.priorities = append(s.names, one.name), append(s.states, string(how.state)), append(s.priorities, one.priority())
	s.samples, s.by, s.keys = append(s.samples, one.Sample), append(s.by, one.By), append(s.keys, one.Key)
	s.failures, s.endedBy, s.endedAt = append(s.failures, how.failure.json()), append(s.endedBy, how.endedBy), append(s.endedAt, how.endedAt(s.tx.Now))
	s.inputs = append(s.inputs, s.values.add(id, one.Input).bytes())
	s.search.add(id, one.version.Program.FoundInInput(one.Input))
	for _, file := range one.Files {
		s.values.addAs(id, file.Type, file.Data)
	}
	first := slice{id: tenants.NewID[slice](), run: id, semantics: one.version.Document.Semantics, priority: one.priority(), paused: how.state == RunQueued}
	switch {
	case one.again != nil && !how.state.Final():
		s.again = append(s.again, startedAgain{one.again, first})
	case how.state == RunRunning:
		s.born = append(s.born, first)
	}
	if one.Actor.Kind != "" {
		s.audits = append(s.audits, tenants.Entry{
			Actor: one.Actor, Action: "run.started", Target: tenants.Target{Kind: "run", ID: id},
		})
	}
	if one.Fresh {
		queueFresh(&s.besides, s.tx.Tenant, id)
	}
	return s.capRun(id, one.version.Document)
}

// write adds the runs, reads them once more, and is empty again.
func (s *startSheet) write(ctx context.Context) error {
	if len(s.ids) == 0 {
		return nil
	}
	batch := &tenants.Batch{ByKey: true}
	counts := map[pipeline.ID]int{}
	for _, id := range s.pipelines {
		counts[id]++
	}
	for _, id := range slices.SortedFunc(maps.Keys(counts), compareIDs) {
		pipeline.QueueRunNumbers(batch, s.tx.Tenant, id, counts[id])
	}
	s.queueRuns(batch, counts)
	s.values.queue(batch, s.tx.Tenant)
	s.search.queue(batch, s.tx.Tenant)
	if len(s.uncapped) > 0 {
		ledger.QueueDefaultRunCaps(&s.besides, s.uncapped)
	}
	batch.QueuedQueries = append(batch.QueuedQueries, s.besides.QueuedQueries...)
	queueSlices(batch, s.tx.Tenant, s.born)
	for _, one := range s.again {
		one.queue(batch, s.tx.Tenant)
	}
	for _, entry := range s.audits {
		if err := tenants.QueueAudit(batch, s.tx.Tenant, entry); err != nil {
			return err
		}
	}
	s.queueRead(batch)
	if err := s.tx.Send(ctx, batch); err != nil {
		return fmt.Errorf("start runs: %w", err)
	}
	*s = startSheet{tx: s.tx}
	return nil
}

// queueRuns adds the runs under the last numbers of their pipelines' counts.
func (s *startSheet) queueRuns(b *tenants.Batch, counts map[pipeline.ID]int) {
	later := make([]int, len(s.ids)) // how many of the pipeline come behind
	for n, id := range s.pipelines {
		counts[id]--
		later[n] = counts[id]
	}
	b.Queue(`
		INSERT INTO runs (tenant_id, created_at, id, pipeline_id, version, number, name, state, priority, sample, input_digest, started_by,
			start_key, failure, ended_by, ended_at)
		SELECT $1, $2, n.id, n.pipeline_id, n.version, p.run_count - n.later, n.name, n.state, n.priority, n.sample, n.input, n.started_by,
			n.start_key, n.failure, n.ended_by, n.ended_at
		FROM unnest($3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::text[], $8::text[], $9::smallint[], $10::bool[], $11::bytea[],
			$12::uuid[], $13::text[], $14::jsonb[], $15::text[], $16::timestamptz[])
			AS n (id, pipeline_id, version, later, name, state, priority, sample, input, started_by, start_key, failure, ended_by, ended_at)
		CROSS JOIN LATERAL (SELECT p.run_count FROM pipelines p WHERE p.tenant_id = $1 AND p.id = n.pipeline_id OFFSET 0) p`,
		s.tx.Tenant, s.tx.Now, s.ids, s.pipelines, s.versions, later, s.names, s.states, s.priorities, s.samples, s.inputs,
		s.by, s.keys, s.failures, s.endedBy, s.endedAt)
}

// queueRead reads the runs once more, as everybody reads them.
func (s *startSheet) queueRead(b *tenants.Batch) {
	starts := s.starts
	b.Queue(`
		SELECT g.place, `+runColumns+` FROM unnest($2::uuid[]) WITH ORDINALITY AS g (id, place)
		CROSS JOIN LATERAL (SELECT r.* FROM runs r WHERE r.tenant_id = $1 AND r.id = g.id OFFSET 0) r `+runJoins,
		s.tx.Tenant, s.ids).Query(func(rows pgx.Rows) error {
		return eachPlaced(rows, func(place int, run Run) { starts[place-1].started = Started{Run: run} })
	})
}

// eachPlaced reads runs behind the places that they have among those that were asked for.
func eachPlaced(rows pgx.Rows, take func(place int, run Run)) error {
	for rows.Next() {
		var place int
		run, err := scanRunBehind(rows, &place)
		if err != nil {
			return err
		}
		take(place, run)
	}
	return rows.Err()
}

// capRun gives the run the cap that its pipeline says, for either kind of funds, or notes
// that the workspace's own is to be taken.
func (s *startSheet) capRun(id RunID, document pipeline.Document) error {
	if document.RunCap == nil {
		s.uncapped = append(s.uncapped, ledger.RunID(id))
		return nil
	}
	limit := ledger.Micros(*document.RunCap)
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		if err := ledger.QueueRunCap(&s.besides, ledger.RunID(id), funds, limit); err != nil {
			return fmt.Errorf("set the cap of a run: %w", err)
		}
	}
	return nil
}
