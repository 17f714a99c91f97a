package engine

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// log is what a fake database was sent. Transactions that hold a bad commitment fail.
type log struct {
	mu    sync.Mutex
	sent  [][]*commitment
	bad   map[*commitment]error
	slow  chan struct{} // each transaction waits for one entry, where set
	begun atomic.Int32
}

func (l *log) send(_ context.Context, _ tenants.ID, all []*commitment) error {
	l.begun.Add(1)
	if l.slow != nil {
		<-l.slow
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range all {
		if err := l.bad[one]; err != nil {
			return err
		}
	}
	l.sent = append(l.sent, all)
	return nil
}

func (l *log) times(one *commitment) int {
	times := 0
	for _, all := range l.sent {
		for _, other := range all {
			if other == one {
				times++
			}
		}
	}
	return times
}

var tenantOne = tenants.ID{1}

func commitmentOf(run byte, changes ...change) *commitment {
	return &commitment{tenant: tenantOne, run: RunID{run}, changes: changes}
}

// commitAll commits all at once and gives each one's fate.
func commitAll(c *committer, all []*commitment) []error {
	fates := make([]error, len(all))
	var over sync.WaitGroup
	for n, one := range all {
		over.Go(func() { fates[n] = c.do(tenantOne, one) })
	}
	over.Wait()
	return fates
}

// A lone commitment goes at once; those that come while it is under way go together.
func TestCommitterJoinsWhatIsInLine(t *testing.T) {
	t.Parallel()
	l := &log{slow: make(chan struct{})}
	c := newCommitter(l.send)
	first := make(chan error)
	go func() { first <- c.do(tenantOne, commitmentOf(1)) }()
	require.Eventually(t, func() bool { return l.begun.Load() == 1 }, patient, tick)
	var rest []*commitment
	for n := range byte(20) {
		rest = append(rest, commitmentOf(n+2))
	}
	fates := make(chan []error)
	go func() { fates <- commitAll(c, rest) }()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.lines[tenantOne]) == len(rest)
	}, patient, tick)
	close(l.slow)
	require.NoError(t, <-first)
	for _, fate := range <-fates {
		require.NoError(t, fate)
	}
	require.Len(t, l.sent, 2)
	require.Len(t, l.sent[1], len(rest))
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.lines) == 0
	}, patient, tick, "nothing is under way any more")
}

// Who fails alone harms no other, and learns its own reason.
func TestCommitterKeepsFatesApart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 3))
		l := &log{bad: map[*commitment]error{}}
		c := newCommitter(l.send)
		var all []*commitment
		for n := range 1 + random.IntN(30) {
			one := commitmentOf(byte(random.IntN(10)), []change{insertStep{}, endRun{}, moveStep{joins: true}}[random.IntN(3)])
			if random.IntN(6) == 0 {
				l.bad[one] = errors.New(string(rune('a' + n)))
			}
			all = append(all, one)
		}
		for n, fate := range commitAll(c, all) {
			require.Equal(t, l.bad[all[n]], fate, "seed %d", seed)
			want := 1
			if fate != nil {
				want = 0
			}
			require.Equal(t, want, l.times(all[n]), "seed %d: written as often as told", seed)
		}
		for _, together := range l.sent {
			requireApart(t, together)
		}
	}
}

// requireApart checks that who changes what others of its run share was alone of its run.
func requireApart(t *testing.T, together []*commitment) {
	t.Helper()
	of := map[RunID]int{}
	for _, one := range together {
		of[one.run]++
	}
	for _, one := range together {
		require.False(t, one.shares() && of[one.run] > 1)
	}
}

// Where the database is away nobody is tried again here: each looks for itself what
// became of it.
func TestCommitterTellsTroubleToAll(t *testing.T) {
	t.Parallel()
	one, two := commitmentOf(1), commitmentOf(2)
	l := &log{bad: map[*commitment]error{one: io.ErrUnexpectedEOF}}
	c := newCommitter(l.send)
	members := []*member[*commitment]{{one, make(chan error, 1)}, {two, make(chan error, 1)}}
	c.work(tenantOne, members)
	require.ErrorIs(t, <-members[0].fate, io.ErrUnexpectedEOF)
	require.ErrorIs(t, <-members[1].fate, io.ErrUnexpectedEOF)
	require.EqualValues(t, 1, l.begun.Load())
}

// A transaction that hangs holds nobody up for long, nor does another tenant's.
func TestCommitterGoesOnBesideATransactionThatHangs(t *testing.T) {
	t.Parallel()
	hangs := commitmentOf(1)
	release := make(chan struct{})
	c := newCommitter(func(_ context.Context, _ tenants.ID, all []*commitment) error {
		if all[0] == hangs {
			<-release
		}
		return nil
	})
	over := make(chan error)
	go func() { over <- c.do(tenantOne, hangs) }()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, busy := c.lines[tenantOne]
		return busy
	}, patient, tick)
	require.NoError(t, c.do(tenantOne, &commitment{tenant: tenants.ID{2}}))
	for _, fate := range commitAll(c, []*commitment{commitmentOf(2), commitmentOf(3)}) {
		require.NoError(t, fate)
	}
	close(release)
	require.NoError(t, <-over)
}

const (
	patient = 10 * time.Second
	tick    = time.Millisecond
)
