package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// chaosPlan says how many runs are begun and what happens to whom after how long. The
// runs are begun in equal waves, one shortly before each fault, so that it hits something.
type chaosPlan struct {
	runs   int
	long   time.Duration // until the last fault was made
	frozen time.Duration // how long a frozen worker stays so
	faults map[string][]time.Duration
}

// The faults of the chaos. The last four are done once or twice beside the kills.
const (
	killWorker      = "kill a worker"
	killLeader      = "kill the worker that leads River's clients"
	freezeWorker    = "freeze a worker"
	crashPostgres   = "crash Postgres"
	restartPostgres = "restart Postgres"
)

// shortPlan fits into the suite.
func shortPlan() chaosPlan {
	return chaosPlan{runs: 60, long: 27 * time.Second, frozen: 12 * time.Second, faults: map[string][]time.Duration{
		killWorker: {2 * time.Second, 16 * time.Second, 27 * time.Second}, crashPostgres: {6 * time.Second}, freezeWorker: {9 * time.Second},
		restartPostgres: {22 * time.Second}, killLeader: {24 * time.Second},
	}}
}

// longPlan is the whole of what the product promises to live through.
func longPlan() chaosPlan {
	plan := chaosPlan{runs: 300, long: 610 * time.Second, frozen: 30 * time.Second, faults: map[string][]time.Duration{
		crashPostgres: {150 * time.Second}, restartPostgres: {330 * time.Second}, freezeWorker: {225 * time.Second}, killLeader: {430 * time.Second},
	}}
	for n := range 30 {
		plan.faults[killWorker] = append(plan.faults[killWorker], time.Duration(n+1)*20*time.Second)
	}
	return plan
}

// wave is how long before a fault its runs begin to begin.
const wave = 1500 * time.Millisecond

// due is how many runs are to be begun by then.
func (p chaosPlan) due(then time.Duration) int {
	waves, full := 0, 0.0
	for _, times := range p.faults {
		for _, at := range times {
			waves++
			full += min(1, max(0, float64(then-at+wave)/float64(wave)))
		}
	}
	return int(full*float64(p.runs)/float64(waves) + 1e-6)
}

// chaos is a plan under way. Everything in it happens on the test's own goroutine.
type chaos struct {
	*fleet
	plan       chaosPlan
	postgres   *fault.Postgres
	workers    []*fault.Process
	frozen     *fault.Process
	thawAt     time.Time
	mixtures   []mixture
	began      time.Time
	begun      int // runs
	postgresUp time.Time
	lost       []lostWork
	takeOvers  []time.Duration
	told       []string // what happened, for the report
}

// lostWork is a slice that a dead or frozen worker held.
type lostWork struct {
	slice string
	fence int64
	since time.Time
}

// Whatever is killed, frozen, crashed or restarted: all runs end right, nothing that was
// finished is done again, what is outside sees one key for each step run, and no slot,
// hold or slice is left behind.
func TestChaos(t *testing.T) {
	t.Parallel()
	report, plan := os.Getenv("TOLLGATE_CHAOS_REPORT"), shortPlan()
	if report != "" {
		plan = longPlan()
	}
	postgres := fault.StartPostgres(t)
	c := &chaos{fleet: newFleet(t, postgres.URL(), postgres.SuperURL()), plan: plan, postgres: postgres, mixtures: mixtures()}
	c.model.Mix(moods()...)
	for n, m := range c.mixtures {
		c.mixtures[n].id = c.publish(m.document())
	}
	c.cap()
	c.workers = []*fault.Process{c.work(), c.work()}
	c.run()
	c.requireEnds()
	c.requireOutside()
	requireSoundRecord(t, c.super)
	c.post.requireRepeatsAreTold(t, c.super)
	c.requireMoney()
	c.requireTakeOvers(report != "")
	if report != "" {
		c.write(report)
	}
}

// cap has every scope counted in which the calls stand; none of the caps is reached.
func (c *chaos) cap() {
	limit := 1_000 * ledger.Dollar
	places := []ledger.Place{ledger.OfTenant(c.tenant), ledger.OfTenantDay(c.tenant)}
	for _, m := range c.mixtures {
		places = append(places, ledger.OfPipeline(ledger.PipelineID(m.id)))
	}
	for _, place := range places {
		c.in(func(ctx context.Context, tx tenants.Tx) error {
			return ledger.SetCap(ctx, tx, ledger.Cap{Place: place, Funds: ledger.Real, Limit: &limit})
		})
	}
}

// run lets the plan happen, and waits until all is over.
func (c *chaos) run() {
	c.began = time.Now()
	c.postgresUp = c.began
	last := c.began
	for over := false; !over; time.Sleep(50 * time.Millisecond) {
		now := time.Now()
		for what, times := range c.plan.faults {
			for _, at := range times {
				if due := c.began.Add(at); due.After(last) && !due.After(now) {
					c.make(what)
				}
			}
		}
		last = now
		c.thaw()
		c.startDue()
		c.answer()
		c.watch()
		over = time.Since(c.began) > c.plan.long && c.begun == c.plan.runs && c.frozen == nil && len(c.lost) == 0 && c.open() == 0
		if time.Since(c.began) > c.plan.long+90*time.Second {
			c.t.Fatalf("not over:\n%s", strings.Join(c.standing(), "\n"))
		}
	}
}

// startDue begins the runs whose time has come.
func (c *chaos) startDue() {
	for due := c.plan.due(time.Since(c.began)); c.begun < due; c.begun++ {
		c.start(c.mixtures[c.begun%len(c.mixtures)].id, fmt.Sprintf(`{"n":%d}`, c.begun), fmt.Sprint("chaos ", c.begun))
		c.toldOf(c.begun)
	}
}

// toldOf sends the event that the run of a number may wait for, mostly before it does.
func (c *chaos) toldOf(n int) {
	c.t.Helper()
	c.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := c.rooms.engine.SendEvent(ctx, tx, engine.Event{
			Name: chaosEvent, Key: fmt.Sprint(n), Data: []byte(`{}`), Sender: "the chaos", SenderID: fmt.Sprint(n)})
		return err
	})
}

func (c *chaos) make(what string) {
	c.tell(what)
	switch what {
	case killWorker:
		c.kill(rand.IntN(len(c.workers)))
	case killLeader:
		leader := fault.LeaderPID(c.t, c.super)
		at := slices.IndexFunc(c.workers, func(w *fault.Process) bool { return w.PID() == leader })
		c.kill(max(at, 0)) // between two leaders anybody will do
	case freezeWorker:
		c.frozen, c.thawAt = c.workers[0], time.Now().Add(c.plan.frozen)
		c.frozen.Freeze()
		c.note(c.frozen)
	case crashPostgres:
		c.postgres.Crash()
		c.postgresUp = time.Now()
	case restartPostgres:
		c.postgres.Restart()
		c.postgresUp = time.Now()
	}
}

// kill kills a worker, unless it is frozen, and puts another in its place.
func (c *chaos) kill(at int) {
	if c.workers[at] == c.frozen {
		at = (at + 1) % len(c.workers)
	}
	victim := c.workers[at]
	victim.Kill()
	c.note(victim)
	c.workers[at] = c.work()
}

func (c *chaos) thaw() {
	if c.frozen != nil && time.Now().After(c.thawAt) {
		c.tell("thaw it")
		c.frozen.Thaw()
		c.frozen = nil
	}
}

// note remembers what a worker held when it fell silent.
func (c *chaos) note(victim *fault.Process) {
	since := time.Now()
	for _, held := range c.held(c.workerID(victim)) {
		held.since = since
		c.lost = append(c.lost, held)
	}
}

func (c *chaos) held(worker string) []lostWork {
	c.t.Helper()
	rows, _ := c.super.Query(context.Background(), `SELECT id::text, fence FROM slices WHERE worker_id = $1 AND state = 'running'`, worker)
	held, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (lostWork, error) {
		var l lostWork
		return l, row.Scan(&l.slice, &l.fence)
	})
	require.NoError(c.t, err)
	return held
}

// watch measures how long what was lost stayed lost. While Postgres was away nobody
// could take anything over, so the time counts from its return.
func (c *chaos) watch() {
	c.lost = slices.DeleteFunc(c.lost, func(l lostWork) bool {
		if c.count(`SELECT count(*) FROM slices WHERE id = $1 AND fence = $2`, l.slice, l.fence) > 0 {
			return false
		}
		since := l.since
		if c.postgresUp.After(since) {
			since = c.postgresUp
		}
		c.takeOvers = append(c.takeOvers, time.Since(since))
		return true
	})
}

// tell notes what happens.
func (c *chaos) tell(what string) {
	line := fmt.Sprintf("%6.1f s: %s; %d runs begun, %d open, %d takeovers so far", time.Since(c.began).Seconds(), what, c.begun, c.open(), len(c.takeOvers))
	c.told = append(c.told, line)
	c.t.Log(line)
}

// standing tells where open runs stand.
func (c *chaos) standing() []string {
	rows, _ := c.super.Query(context.Background(), openRuns)
	lines, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	return lines
}

// requireEnds checks that each run did all it had to do, once, and came to its result.
func (c *chaos) requireEnds() {
	c.t.Helper()
	require.Equal(c.t, c.plan.runs, c.count(`SELECT count(*) FROM runs WHERE state = 'completed'`))
	for _, m := range c.mixtures {
		wrong := c.count(`SELECT count(*) FROM runs r WHERE r.pipeline_id = $1 AND
			(SELECT count(*) FROM step_runs s WHERE s.tenant_id = r.tenant_id AND s.run_id = r.id AND s.state = 'done') <> $2`, m.id, m.done)
		require.Zero(c.t, wrong, "runs of %q that did not do exactly their steps", m.name)
	}
	require.Zero(c.t, c.count(`SELECT count(*) FROM runs WHERE result_digest IS DISTINCT FROM input_digest`), "runs with another result than their number")
}

// requireOutside checks what the outside saw: one key for each step run, and no key more
// often than the record tells of tries.
func (c *chaos) requireOutside() {
	c.t.Helper()
	arrivals := map[string]int{}
	for _, seen := range c.model.Seen() {
		arrivals[seen.Key]++
	}
	require.Len(c.t, arrivals, c.count(`SELECT count(*) FROM step_runs WHERE kind = 'ai'`), "idempotency keys seen by the model")
	for key, times := range arrivals {
		require.LessOrEqual(c.t, times, c.count(`SELECT attempt FROM step_runs WHERE id = $1`, key), "%s was called more often than the record tells", key)
	}
	require.Zero(c.t, c.count(`SELECT count(*) FROM tries a JOIN tries b USING (tenant_id, step_run_id) WHERE a.outcome = 'done' AND b.number > a.number`),
		"finished steps that were tried again")
}

// requireMoney checks that every balance is the sum of its lines, and that nothing is held.
func (c *chaos) requireMoney() {
	c.t.Helper()
	c.in(func(ctx context.Context, tx tenants.Tx) error {
		status, err := ledger.Month(ctx, tx)
		require.NoError(c.t, err)
		require.Zero(c.t, status.Of(ledger.Real).Held)
		differences, err := ledger.Reconcile(ctx, tx)
		require.Empty(c.t, differences)
		return err
	})
}

// promised is how soon a run goes on by itself.
const promised = 15 * time.Second

// requireTakeOvers holds the promise on a machine that does nothing else; the suite may
// keep it busy.
func (c *chaos) requireTakeOvers(strict bool) {
	c.t.Helper()
	require.NotEmpty(c.t, c.takeOvers, "nobody who was killed held anything")
	slices.Sort(c.takeOvers)
	c.t.Logf("%d takeovers, median %v, longest %v", len(c.takeOvers), c.takeOvers[len(c.takeOvers)/2].Round(100*time.Millisecond), c.longest())
	bound := promised
	if !strict {
		bound *= slack()
	}
	require.LessOrEqual(c.t, c.longest(), bound)
}

func (c *chaos) longest() time.Duration {
	return c.takeOvers[len(c.takeOvers)-1].Round(100 * time.Millisecond)
}

// write leaves the dated result in a folder.
func (c *chaos) write(folder string) {
	c.t.Helper()
	today := time.Now().UTC().Format("2006-01-02")
	repeated := c.count(`SELECT count(*) FROM tries WHERE outcome = 'interrupted'`)
	text := fmt.Sprintf(`# Chaos, %s

%d runs of %d pipelines, two workers, one Postgres with fsync on; all processes real.
%s

- Runs that ended right: %d of %d, in %v.
- Step runs: %d, of which %d were interrupted and tried again under the same key.
- Calls seen outside: %d under %d keys, %d mails.
- Takeovers: %d, median %v, longest %v (promised: %v, counted from the kill or from
  Postgres's return).
- Finished steps done again: 0. Slices, open holds and open waits left: 0. Ledger
  recomputed without a difference.

## What happened

%s
`, today, c.plan.runs, len(c.mixtures), c.faultsInWords(), c.plan.runs, c.plan.runs, time.Since(c.began).Round(time.Second),
		c.count(`SELECT count(*) FROM step_runs`), repeated, len(c.model.Seen()), c.count(`SELECT count(*) FROM step_runs WHERE kind = 'ai'`), c.post.count(),
		len(c.takeOvers), c.takeOvers[len(c.takeOvers)/2].Round(100*time.Millisecond), c.longest(), promised,
		"    "+strings.Join(c.told, "\n    "))
	require.NoError(c.t, os.MkdirAll(folder, 0o755))
	require.NoError(c.t, os.WriteFile(filepath.Join(folder, today+"-chaos.md"), []byte(text), 0o644))
}

// faultsInWords counts what was done.
func (c *chaos) faultsInWords() string {
	return fmt.Sprintf("%d kills of a worker, and one of River's leader; a worker frozen for %v; a crash and a restart of Postgres.",
		len(c.plan.faults[killWorker]), c.plan.frozen)
}
