package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// workVariable names the database that this program is to work on, instead of testing.
const workVariable = "TOLLGATE_BENCH_WORK"

// callTime is how long an outside call of the fleet takes.
const callTime = 200 * time.Millisecond

// TestWorkerProcess is a working process of W7, where the variable says so: it works
// until its input ends, and then tells how many calls it made.
func TestWorkerProcess(t *testing.T) {
	url := os.Getenv(workVariable)
	if url == "" {
		return // an ordinary test run
	}
	db, err := tenants.Open(t.Context(), tenants.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	caller := &slowly{}
	wire(t, db, caller)
	fmt.Println("working")
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("calls", caller.made.Load())
}

// slowly answers every call after a while.
type slowly struct{ made atomic.Int64 }

// Call counts the call.
func (s *slowly) Call(_ context.Context, call engine.Call) engine.Reply {
	time.Sleep(callTime)
	s.made.Add(1)
	return engine.Reply{Output: []byte(`{"message_id": "` + call.Key + `"}`)}
}

// member is one process of a fleet.
type member struct {
	*exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

// enlist starts a process and returns once it works.
func enlist(t *testing.T, url string) member {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorkerProcess$")
	command.Env = append(os.Environ(), workVariable+"="+url)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	m := member{command, in, bufio.NewScanner(out)}
	m.read(t, "working")
	return m
}

// read waits for a line and returns what stands behind the word it begins with.
func (m member) read(t *testing.T, word string) string {
	t.Helper()
	for m.out.Scan() {
		if rest, ok := strings.CutPrefix(m.out.Text(), word); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("a working process ended without saying %q", word)
	return ""
}

// dismiss stops the process and returns how many calls it made.
func (m member) dismiss(t *testing.T) int {
	t.Helper()
	require.NoError(t, m.in.Close())
	calls, err := strconv.Atoi(m.read(t, "calls"))
	require.NoError(t, err)
	require.NoError(t, m.Wait())
	return calls
}

// fleets are the figures of W7: the same runs by one working process and by two.
func fleets(t *testing.T, s size) []*row {
	t.Helper()
	runs := s.crowd
	var twice float64
	one := &row{name: "W7 one process, calls of 200 ms", unit: "steps/s", take: func() float64 { rate, _ := fleet(t, 1, runs); return rate }}
	return []*row{one,
		{name: "W7 two processes", unit: "steps/s", base: one, bar: "≥ 1.9 ×", take: func() float64 {
			rate, extra := fleet(t, 2, runs)
			twice = float64(extra)
			return rate
		}},
		{name: "W7 calls made more than once", unit: "", bar: "0", mayBeNone: true, take: func() float64 { return twice }},
	}
}

// fleet gives the pace of so many processes, and how many calls too many they made.
func fleet(t *testing.T, processes, runs int) (float64, int) {
	t.Helper()
	runs = max(runs, 1)
	h := newIdleHouse(t)
	h.allow(t, processes*slots, runs)
	id := h.publish(t, line(pipeline.KindEmail, stepsOfRun))
	var members []member
	for range processes {
		members = append(members, enlist(t, h.db.URL))
	}
	began := time.Now()
	group, starting := errgroup.WithContext(t.Context())
	group.SetLimit(starters)
	for n := range runs {
		group.Go(func() error { return h.start(starting, id, fmt.Sprint("fleet ", n)) })
	}
	require.NoError(t, group.Wait())
	h.until(t.Context(), t, `SELECT count(*) = $1 FROM runs WHERE ended_at IS NOT NULL`, runs)
	took, calls := time.Since(began), 0
	for _, m := range members {
		calls += m.dismiss(t)
	}
	return float64(runs*stepsOfRun) / took.Seconds(), calls - runs*stepsOfRun
}
