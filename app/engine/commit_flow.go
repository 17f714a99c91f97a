package engine

import (
	"slices"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// flowRows are the changes that only groups make, in columns.
type flowRows struct {
	notes    groupNotes
	caught   catchMoves
	begun    itemBegins
	items    []insertedItems
	kept     keptResults
	released []SliceID
	born     []slice
	moved    sliceMoves
	over     []endWindow
	keeping  []SliceID // the slices that go on behind lists which are over
}

func (f *flowRows) add(c *commitment, entry change, values *valueRows) {
	switch entry := entry.(type) {
	case noteGroup:
		f.notes.add(entry)
	case catchStep:
		f.caught.add(entry, catchOutput(c, entry, values))
	case beginItem:
		f.begun.ids, f.begun.slices = append(f.begun.ids, entry.id), append(f.begun.slices, c.slice)
	case insertItems:
		f.items = append(f.items, insertedItems{c.run, entry, digestsOf(c.run, entry, values)})
	case keepResult:
		f.kept.add(entry)
	case releaseItems:
		f.released = append(f.released, c.slice)
	case fork:
		f.born = append(f.born, slice{
			id: entry.slice, run: c.run, step: entry.at, window: entry.window,
			semantics: c.semantics, priority: c.priority, paused: c.state != RunRunning,
		})
	case moveSlice:
		f.moved.add(c, entry)
	case endWindow:
		f.over, f.keeping = append(f.over, entry), append(f.keeping, c.slice)
	}
}

// queueRows adds the statements about step runs, before those that move others.
func (f *flowRows) queueRows(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	f.notes.queue(b, tenant)
	f.caught.queue(b, tenant)
	f.begun.queue(b, tenant, worker)
	if len(f.released) > 0 {
		b.Queue(releaseQuery, tenant, f.released)
	}
}

// queueItems adds the rows of new lists, once the rows of their groups are there.
func (f *flowRows) queueItems(b *tenants.Batch, tenant tenants.ID) {
	f.kept.queue(b, tenant)
	for _, i := range f.items {
		b.Queue(`
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, input_digest)
			SELECT $1, i.id, $2, $3, $4, $5, $6, i.place - 1, 'queued', i.digest
			FROM unnest($7::uuid[], $8::bytea[]) WITH ORDINALITY AS i (id, digest, place)`,
			tenant, i.run, i.group.ID, i.group.StepID, KindItem, pipeline.ListSteps, i.ids, i.digests)
	}
}

// queueSlices adds the statements about slices, which come last.
func (f *flowRows) queueSlices(b *tenants.Batch, tenant tenants.ID) {
	f.moved.queue(b, tenant)
	queueSlices(b, tenant, f.born)
	for n, list := range f.over {
		b.Queue(endWindowQuery, tenant, list.list, f.keeping[n])
	}
}

// endWindowQuery leaves out those that are just about to join the list as well: they hold
// their own slice and wait for us, so waiting for them would end in a deadlock. They lose,
// look again, and end by themselves.
const endWindowQuery = `
	DELETE FROM slices WHERE tenant_id = $1 AND id = ANY (ARRAY (
		SELECT id FROM slices WHERE tenant_id = $1 AND window_id = $2 AND id <> $3 FOR UPDATE SKIP LOCKED))`

// insertedItems are the items of a list with the digests of their values.
type insertedItems struct {
	run RunID
	insertItems
	digests [][]byte
}

func digestsOf(run RunID, items insertItems, values *valueRows) [][]byte {
	digests := make([][]byte, len(items.values))
	for n, content := range items.values {
		digests[n] = values.add(run, content).bytes()
	}
	return digests
}

// groupNotes are what groups and their parts have come to so far.
type groupNotes struct {
	ids            []StepRunID
	chosen, scores []string
	costs          []int64
}

func (g *groupNotes) add(n noteGroup) {
	g.ids, g.chosen = append(g.ids, n.id), append(g.chosen, string(n.chosen))
	g.scores, g.costs = append(g.scores, n.score), append(g.costs, n.cost)
}

func (g *groupNotes) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(g.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE step_runs s SET chosen = n.chosen, score = n.score, cost_micros = n.cost, changed = pg_current_xact_id()
			FROM (
				SELECT m.*, at.place FROM (
					SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[]) AS m (id, chosen, score, cost) LIMIT $6) m
				`+atStep+`) n
			WHERE s.ctid = n.place AND s.`+stateByKey+` = 'running' RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $6)`,
		tenant, g.ids, g.chosen, g.scores, g.costs, len(g.ids))
}

// itemBegins are items that slices begin which they had taken on.
type itemBegins struct {
	ids    []StepRunID
	slices []SliceID
}

func (i *itemBegins) queue(b *tenants.Batch, tenant tenants.ID, worker WorkerID) {
	if len(i.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE step_runs s SET state = 'running', slice_id = NULL, worker_id = $2, begun_at = now(), changed = pg_current_xact_id()
			FROM (SELECT m.*, at.place FROM (SELECT * FROM unnest($3::uuid[], $4::uuid[]) AS m (id, slice_id) LIMIT $5) m `+atStep+`) m
			WHERE s.ctid = m.place AND s.`+stateByKey+` = 'queued' AND s.slice_id = m.slice_id RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $5)`,
		tenant, worker, i.ids, i.slices, len(i.ids))
}

// sliceMoves are the places where slices stand, and the lists that they count towards.
type sliceMoves struct {
	ids         []SliceID
	fences      []int64
	to, windows []StepRunID
}

func (s *sliceMoves) add(c *commitment, m moveSlice) {
	s.ids, s.fences = append(s.ids, c.slice), append(s.fences, c.fence)
	s.to, s.windows = append(s.to, m.to), append(s.windows, m.window)
}

func (s *sliceMoves) queue(b *tenants.Batch, tenant tenants.ID) {
	if len(s.ids) == 0 {
		return
	}
	b.Queue(`
		WITH hit AS (
			UPDATE slices s SET step_run_id = coalesce(m.step, s.step_run_id), window_id = m.list, wait_id = CASE WHEN m.step IS NULL THEN s.wait_id END
			FROM (
				SELECT m.*, at.place FROM (
					SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[]) AS m (id, step, list, fence) LIMIT $6) m
				`+atSlice+`) m
			WHERE s.ctid = m.place AND s.fence = m.fence AND s.`+stateByKey+` = 'running' RETURNING 1)
		SELECT require_rows((SELECT count(*) FROM hit), $6)`,
		tenant, s.ids, s.to, s.windows, s.fences, len(s.ids))
}

// cancels tells a commit that ends other branches of the run.
func (c *commitment) cancels() bool {
	return slices.ContainsFunc(c.changes, func(entry change) bool {
		_, ok := entry.(cancelBelow)
		return ok
	})
}

// forks tells a decision that sets other slices going.
func (d decision) forks() bool {
	return slices.ContainsFunc(d.changes, func(entry change) bool {
		_, ok := entry.(fork)
		return ok
	})
}
