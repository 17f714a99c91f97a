package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fakellm"
	"tollgate/app/apptest/fault"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// The cases here are numbered after the set of failures seen in other products that the
// project is tested against; each needs real processes.

const askAndTell = `{"semantics": 1, "name": "Ask and tell", "input": [{"name": "n", "type": "number", "required": true}], "steps": [%s]}`

// A step is under way when the program is stopped, in good order or by force, and it is
// started again later: the step ends once in the record, what is outside saw one key,
// and the steps behind it run once.
func TestCaseS01StopInTheMiddleOfAStep(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*fault.Process){
		"killed": (*fault.Process).Kill, "stopped": func(p *fault.Process) { p.Signal(syscall.SIGTERM, 20*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := onSharedServer(t)
			arrived := make(chan struct{})
			f.model.Play(fakellm.Turn{Hang: true, OnArrival: func() { close(arrived) }})
			first := f.work()
			f.start(f.publish(fmt.Sprintf(askAndTell, ask("charge")+","+send("tell"))), `{"n": 1}`, "S01")
			<-arrived
			stop(first)
			f.work()
			f.awaitEnds(40 * time.Second)
			calls := f.model.Seen()
			require.Len(t, calls, 2)
			require.Equal(t, calls[0].Key, calls[1].Key)
			require.Equal(t, 2, f.count(`SELECT attempt FROM step_runs WHERE step_id = 'charge' AND state = 'done'`))
			require.Equal(t, 1, f.count(`SELECT count(*) FROM tries WHERE outcome = 'interrupted' AND number = 1`), "the record tells of the cut try")
			require.Equal(t, 1, f.post.count())
			requireSoundRecord(t, f.super)
		})
	}
}

// Two long steps are under way, and the worker of one is killed: that one is tried again
// soon, and the one that lives is not touched for as long as it takes.
func TestCaseS04LongAndDeadAreToldApart(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	const long = 20 * time.Second // twice the silence after which a worker counts as dead
	f.model.Mix(fakellm.Share{PerMille: 1000, Turn: fakellm.Turn{Delay: long}})
	id := f.publish(fmt.Sprintf(askAndTell, ask("long")))
	victim, living := f.work("TOLLGATE_SLICES=1"), f.work("TOLLGATE_SLICES=1")
	f.start(id, `{"n": 1}`, "first")
	f.start(id, `{"n": 2}`, "second")
	require.Eventually(t, func() bool { return len(f.model.Seen()) == 2 }, 20*time.Second, 20*time.Millisecond)
	dead := f.keysOf(victim)
	alive := f.keysOf(living)
	require.Len(t, dead, 1)
	require.Len(t, alive, 1)
	victim.Kill()
	killed := time.Now()
	f.work()
	require.Eventually(t, func() bool { return f.model.Times(dead[0]) == 2 }, promised*slack(), 50*time.Millisecond)
	t.Logf("tried again after %v", time.Since(killed).Round(100*time.Millisecond))
	f.awaitEnds(2 * long)
	require.Equal(t, 1, f.model.Times(alive[0]), "an honest long step was tried again")
	require.Equal(t, 2, f.model.Times(dead[0]))
}

// keysOf are the step runs that a process is at, as their keys.
func (f *fleet) keysOf(process *fault.Process) []string {
	f.t.Helper()
	var keys []string
	err := f.super.QueryRow(f.t.Context(), `
		SELECT coalesce(array_agg(s.id::text), '{}') FROM step_runs s JOIN slices l ON l.id = s.slice_id
		WHERE s.state = 'running' AND l.worker_id = $1`, f.workerID(process)).Scan(&keys)
	require.NoError(f.t, err)
	slices.Sort(keys)
	return keys
}

// Postgres is restarted while crashed runs are being taken over: every one of them is
// taken over all the same.
func TestCaseS07PostgresRestartsDuringTheTakeOver(t *testing.T) {
	t.Parallel()
	const runs = 200
	postgres := fault.StartPostgres(t)
	f := newFleet(t, postgres.URL(), postgres.SuperURL())
	f.model.Mix(fakellm.Share{PerMille: 1000, Turn: fakellm.Turn{Hang: true}})
	id := f.publish(fmt.Sprintf(askAndTell, ask("one")+","+ask("two")))
	f.in(func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: runs, OpenRuns: runs})
	})
	dying := f.work("TOLLGATE_SLICES=200")
	for n := range runs {
		f.start(id, fmt.Sprintf(`{"n":%d}`, n), fmt.Sprint("S07 ", n))
	}
	require.Eventually(t, func() bool { return len(f.model.Seen()) == runs }, 30*time.Second, 50*time.Millisecond)
	dying.Kill()
	f.model.Mix()
	f.work()
	before := f.count(`SELECT sum(fence) FROM slices`)
	require.Eventually(t, func() bool { return f.count(`SELECT sum(fence) FROM slices`) > before },
		30*time.Second, 5*time.Millisecond, "the take-over did not begin")
	postgres.Crash()
	f.awaitEnds(2 * time.Minute)
	require.Equal(t, runs, f.count(`SELECT count(*) FROM runs WHERE state = 'completed'`))
	requireSoundRecord(t, f.super)
}

// A start says how the database is reached, and with the tenants' work behind a pooler
// in transaction mode the product works as without.
func TestCaseS75ProductBehindAPooler(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	direct := f.getenv("DATABASE_URL")
	pooled := []string{"DATABASE_URL=" + fault.StartBouncer(t, direct, "transaction"), "TOLLGATE_SYSTEM_DATABASE_URL=" + direct}
	worker := f.work(pooled...)
	require.Contains(t, worker.AwaitLine("driving runs", time.Second), "through a pooler")
	f.start(f.publish(fmt.Sprintf(askAndTell, ask("one")+","+check("two")+","+send("three"))), `{"n": 1}`, "S75")
	f.awaitEnds(30 * time.Second)
	requireSoundRecord(t, f.super)
	require.NotContains(t, worker.Output(), "\"level\":\"ERROR\"")
	require.Contains(t, f.work().AwaitLine("driving runs", time.Second), "direct")
}

// While the database takes no changes the check of a working process is red, and that of
// its life green: nothing would be won by a restart.
func TestCaseS74HealthOfAReadOnlyServer(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	addr := dbtest.FreeAddr(t)
	f.work("TOLLGATE_ADDR=" + addr)
	status := func(path string) int {
		response, err := http.Get("http://" + addr + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, status("/readyz"))
	var database string
	require.NoError(t, f.super.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database))
	turn := func(readOnly string) {
		server, err := pgx.Connect(t.Context(), dbtest.ServerURL(t))
		require.NoError(t, err)
		defer server.Close(context.Background())
		_, err = server.Exec(t.Context(), `ALTER DATABASE `+database+` SET default_transaction_read_only = `+readOnly)
		require.NoError(t, err)
		_, err = server.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE quote_ident(datname) = $1`, database)
		require.NoError(t, err)
	}
	turn("on")
	require.Eventually(t, func() bool { return status("/readyz") == http.StatusServiceUnavailable }, 20*time.Second, 100*time.Millisecond)
	require.Equal(t, http.StatusOK, status("/healthz"))
	turn("off")
	require.Eventually(t, func() bool { return status("/readyz") == http.StatusOK }, 20*time.Second, 100*time.Millisecond)
	f.start(f.publish(fmt.Sprintf(askAndTell, ask("one"))), `{"n": 1}`, "S74")
	f.awaitEnds(30 * time.Second)
}
