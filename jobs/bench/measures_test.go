package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/migrations/dbtest"
)

var (
	wanted      = flag.String("measure", "", "workloads to measure, apart by commas, such as W1,W2; empty: none")
	repetitions = flag.Int("reps", 5, "how often each figure is taken")
	manyRuns    = flag.Int("runs", 2000, "how many runs W1 starts")
	note        = flag.String("note", "", "folder to write the results to, as a file named by the date; empty: none")
)

// size is how much of everything is measured.
type size struct {
	plain     time.Duration
	runs      int // of ten steps each
	lone      int // steps of one run
	rounds    int // of ten steps each, of one run
	fan, wide int // items side by side
	begins    int // runs of one step, one after the other
	crowd     int // runs of ten steps that a busy tenant starts
	history   int // finished step runs in the tables
	parked    int // runs that wait for events
	singly    int // how many of them are woken one after the other
	look      time.Duration
}

var (
	full = size{plain: 3 * time.Second, lone: 200, rounds: 1000, fan: 500, wide: 10_000, begins: 200, crowd: 2000, history: 1_000_000, parked: 5000, singly: 200, look: 20 * time.Second}
	tiny = size{plain: 20 * time.Millisecond, runs: 3, lone: 5, rounds: 2, fan: 3, wide: 5, begins: 2, crowd: 3, history: 100, parked: 5, singly: 2, look: 50 * time.Millisecond}
)

const stepsOfRun = 10

// TestMeasures prints the table of the workloads that are asked for.
func TestMeasures(t *testing.T) {
	if *wanted == "" {
		return // "make bench" asks for all; TestMeasuresStillRun is the form for every day
	}
	server := durableServer(t)
	t.Setenv("TEST_DATABASE_URL", server)
	full.runs = *manyRuns
	rows := rowsFor(t, server, full, strings.Split(*wanted, ","))
	for range *repetitions {
		takeAll(rows)
	}
	result := fmt.Sprintf("%s, %d cores, %d repetitions\n\n%s", time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(), *repetitions, table(rows))
	fmt.Print("\n", result, "\n")
	if *note != "" {
		require.NoError(t, os.MkdirAll(*note, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(*note, time.Now().UTC().Format("2006-01-02-1504")+".md"), []byte(result), 0o644))
	}
}

// takeAll is one repetition: each figure in turn, so that what else the machine does
// falls on all of them alike.
func takeAll(rows []*row) {
	for _, r := range rows {
		r.got = append(r.got, r.take())
	}
}

// rowsFor sets up what the workloads need and warms it up.
func rowsFor(t *testing.T, server string, s size, workloads []string) []*row {
	t.Helper()
	rows := plainRowsOf(t, newPlain(t, server), s)
	raw, ours := newChain(t, server), newHouse(t)
	raw.clock.meter, ours.clock.meter = newMeter(t, server), newMeter(t, server)
	for _, workload := range workloads {
		switch workload {
		case "W1":
			rows = append(rows, throughput(t, raw, ours, s)...)
		case "W2":
			rows = append(rows, latency(t, raw, ours, s)...)
		case "W3":
			rows = append(rows, fanned(t, ours, s)...)
		case "W4":
			rows = append(rows, parkedRows(t, raw, ours, s)...)
		case "W5":
			rows = append(rows, growth(t, ours, s)...)
		case "W6":
			rows = append(rows, fairness(t, s)...)
		case "W7":
			rows = append(rows, fleets(t, s)...)
		case "W8":
			rows = append(rows, aged(t, ours, s)...)
		case "START":
			rows = append(rows, begin(t, raw, ours, s)...)
		default:
			t.Fatalf("there is no workload %q", workload)
		}
	}
	return rows
}

func plainRowsOf(t *testing.T, p plain, s size) []*row {
	var rows []*row
	for _, clients := range []int{1, 8} {
		rows = append(rows, &row{name: fmt.Sprintf("plain commits, %d at once", clients), unit: "commits/s",
			take: func() float64 { return p.rate(t, clients, s.plain) }})
	}
	return rows
}

func throughput(t *testing.T, raw *chain, ours *house, s size) []*row {
	t.Helper()
	free := ours.publish(t, line(pipeline.KindEmail, stepsOfRun))
	paid := ours.publish(t, line(pipeline.KindAI, stepsOfRun))
	warm := max(s.runs/20, 1)
	raw.run(t, warm, stepsOfRun)
	ours.run(t, free, warm, stepsOfRun)
	ours.run(t, paid, warm, stepsOfRun)
	base := pace("W1 raw River chain", nil, "", func() took { return raw.run(t, s.runs, stepsOfRun) })
	return slices.Concat(base,
		pace("W1 Tollgate", base, "≥ 4 ×", func() took { return ours.run(t, free, s.runs, stepsOfRun) }),
		pace("W1 Tollgate, money reserved and booked", base, "", func() took { return ours.run(t, paid, s.runs, stepsOfRun) }))
}

// pace is two rows of one go: steps a second, and what a step costs in processor time.
func pace(name string, base []*row, bar string, run func() took) []*row {
	var last took
	rows := []*row{
		{name: name, unit: "steps/s", bar: bar, take: func() float64 { last = run(); return last.rate() }},
		{name: name + ", processor", unit: "ms/step", take: func() float64 { return last.cost() }},
	}
	for n := range base {
		rows[n].base = base[n]
	}
	return rows
}

func latency(t *testing.T, raw *chain, ours *house, s size) []*row {
	t.Helper()
	free := ours.publish(t, line(pipeline.KindEmail, s.lone))
	paid := ours.publish(t, line(pipeline.KindAI, s.lone))
	base := &row{name: "W2 raw River chain", unit: "ms", take: func() float64 { return raw.run(t, 1, s.lone).gap() }}
	return []*row{base,
		{name: "W2 Tollgate", unit: "ms", base: base, bar: "≤ 0.35 ×, ≤ 0.8 ms", take: func() float64 { return ours.run(t, free, 1, s.lone).gap() }},
		{name: "W2 Tollgate, money reserved and booked", unit: "ms", base: base, take: func() float64 { return ours.run(t, paid, 1, s.lone).gap() }},
	}
}

// growth is one run of a loop, so that its history is longer than a document may be.
func growth(t *testing.T, ours *house, s size) []*row {
	t.Helper()
	long := ours.publish(t, loop(s.rounds))
	steps := s.rounds * stepsOfRun
	return []*row{{name: fmt.Sprintf("W5 pace of the last tenth of %d steps against the first", steps), bar: "≥ 0.8",
		take: func() float64 { return ours.run(t, long, 1, steps).held() }}}
}

// Each workload runs in a tiny form, so that "make bench" works when it is wanted.
func TestMeasuresStillRun(t *testing.T) {
	t.Parallel()
	rows := rowsFor(t, dbtest.ServerURL(t), tiny, []string{"W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "START"})
	takeAll(rows)
	for _, r := range rows {
		if !r.mayBeNone {
			require.Positive(t, median(r.got), r.name)
		}
	}
	require.Contains(t, table(rows), "| W1 Tollgate |")
}
