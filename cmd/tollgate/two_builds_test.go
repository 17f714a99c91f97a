package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/app/engine"
	"tollgate/app/pipeline"
)

// semanticsSource is the file that says which rules a build knows.
const semanticsSource = "../../app/pipeline/limits.go"

var semanticsLine = regexp.MustCompile(`(?m)^const Semantics = (\d+)$`)

// olderBuild builds the program as it was when its rules had one number less: the same
// tree, but for that number.
func olderBuild(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	source, err := os.ReadFile(semanticsSource)
	require.NoError(t, err)
	now := []byte("const Semantics = " + strconv.Itoa(pipeline.Semantics))
	require.Equal(t, string(now), string(semanticsLine.Find(source)))
	before := bytes.Replace(source, now, []byte("const Semantics = "+strconv.Itoa(pipeline.Semantics-1)), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "limits.go"), before, 0o644))
	path, err := filepath.Abs(semanticsSource)
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir, "limits.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	program := filepath.Join(dir, "tollgate")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// twoBuilds is a fleet in which an older build works beside this one.
type twoBuilds struct {
	*fleet
	older         string
	known, unread pipeline.ID // what both know, and what only this build knows
	started       int
}

// document sends a mail, waits a moment and sends another, under the rules of a number.
func (b *twoBuilds) document(semantics int) string {
	const mail = `{"id": %q, "name": "Send", "kind": "email", "with": {"to": ["kim@example.com"], "subject": "s", "body": "b"}}`
	return fmt.Sprintf(`{"semantics": %d, "name": "Rules %d", "steps": [%s, {"id": "rest", "name": "Rest", "kind": "wait", "with": {"for": "1s"}}, %s]}`,
		semantics, semantics, fmt.Sprintf(mail, "one"), fmt.Sprintf(mail, "two"))
}

// begin starts some runs of both pipelines.
func (b *twoBuilds) begin(each int) {
	for range each {
		for _, id := range []pipeline.ID{b.known, b.unread} {
			b.started++
			b.start(id, `{}`, "run "+strconv.Itoa(b.started))
		}
	}
}

// workOlder starts the older build.
func (b *twoBuilds) workOlder() *fault.Process {
	b.t.Helper()
	process := fault.Start(b.t, b.older, []string{"work"}, append(cleanEnv(), b.env...))
	process.AwaitLine("driving runs", 30*time.Second)
	return process
}

func (b *twoBuilds) openOf(id pipeline.ID) int {
	b.t.Helper()
	return b.count(`SELECT count(*) FROM runs WHERE pipeline_id = $1 AND ended_at IS NULL`, id)
}

func (b *twoBuilds) awaitNoneOpen(within time.Duration, of ...pipeline.ID) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		open := 0
		for _, id := range of {
			open += b.openOf(id)
		}
		return open == 0
	}, within, 50*time.Millisecond, "runs are open")
}

// touched counts what a worker has done in runs of a pipeline: slices that it has, steps
// that it began, tries of theirs.
func (b *twoBuilds) touched(worker string, id pipeline.ID) int {
	b.t.Helper()
	return b.count(`
		SELECT (SELECT count(*) FROM step_runs s JOIN runs r ON r.id = s.run_id WHERE r.pipeline_id = $2 AND s.worker_id = $1::uuid)
			+ (SELECT count(*) FROM slices s JOIN runs r ON r.id = s.run_id WHERE r.pipeline_id = $2 AND s.worker_id = $1::uuid)`, worker, id)
}

// An older build never takes what follows rules that it does not know, also where it is
// alone, gives slots, fires timers and takes over from a dead one of this build; what it
// knows it goes on doing. Both finish theirs, and nothing is done twice.
func TestTwoBuildsWithDifferentRulesSideBySide(t *testing.T) {
	t.Parallel()
	b := &twoBuilds{fleet: onSharedServer(t), older: olderBuild(t)}
	b.known, b.unread = b.publish(b.document(pipeline.Semantics-1)), b.publish(b.document(pipeline.Semantics))
	older := b.workerID(b.workOlder())
	b.begin(5)
	b.awaitNoneOpen(30*time.Second, b.known)
	require.Equal(t, 5, b.openOf(b.unread), "the older build leaves them")
	require.Equal(t, 5, b.count(`SELECT count(*) FROM slices s JOIN runs r ON r.id = s.run_id WHERE r.pipeline_id = $1 AND s.state = 'ready'`, b.unread))

	newer := b.work()
	dead := b.workerID(newer)
	b.awaitNoneOpen(30*time.Second, b.unread)
	b.begin(20)
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM slices s JOIN runs r ON r.id = s.run_id WHERE r.pipeline_id = $1 AND s.state = 'running'`, b.unread) > 0
	}, 20*time.Second, time.Millisecond)
	newer.Kill()
	b.awaitNoneOpen(40*time.Second, b.known)
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM slices WHERE worker_id = $1::uuid`, dead) == 0 },
		30*time.Second, 50*time.Millisecond, "what the dead one had was taken from it")
	require.Positive(t, b.openOf(b.unread), "and the older build leaves it")

	b.work()
	b.awaitNoneOpen(40*time.Second, b.known, b.unread)
	require.Positive(t, b.touched(older, b.known))
	require.Zero(t, b.touched(older, b.unread), "the older build took what it does not know")
	requireSoundRecord(t, b.super)
	b.requireQueues(older)
}

// requireQueues checks that the older build was never given a job of rules that it does
// not know, as River keeps it.
func (b *twoBuilds) requireQueues(older string) {
	b.t.Helper()
	rows, err := b.super.Query(context.Background(), `SELECT DISTINCT j.queue FROM river.river_job j WHERE $1 = ANY (j.attempted_by)`, older)
	require.NoError(b.t, err)
	queues, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	require.Contains(b.t, queues, engine.Queue(pipeline.Semantics-1))
	require.NotContains(b.t, queues, engine.Queue(pipeline.Semantics))
}
