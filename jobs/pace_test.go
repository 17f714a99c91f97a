package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/llm"
)

func TestPaceIsFreeUntilTheProviderRefuses(t *testing.T) {
	t.Parallel()
	p, now := &pace{}, time.Now()
	for range 1000 {
		require.Zero(t, p.enter(now))
	}
	p.leave(now, end{refused: true, leave: time.Second})
	require.InDelta(t, 700, p.bound, 1)
	require.GreaterOrEqual(t, p.enter(now), time.Second, "the provider is left alone")
	for range 998 { // those that failed with it are not cut again
		p.leave(now, end{refused: true})
	}
	require.InDelta(t, 700, p.bound, 1)
}

// Calls that go well let the bound grow by one a round; trouble cuts it.
func TestPaceFindsItsBound(t *testing.T) {
	t.Parallel()
	const bears = 20 // calls at once
	p, now := &pace{}, time.Now()
	refused, calls := 0, 0
	for round := range 2000 {
		now = now.Add(time.Second)
		inFlight := 0
		for range 50 {
			if p.enter(now) == 0 {
				inFlight++
			}
		}
		for n := range inFlight {
			e := end{answered: true, took: time.Second}
			if n >= bears {
				e = end{refused: true}
			}
			if round > 100 {
				calls++
				if e.refused {
					refused++
				}
			}
			p.leave(now.Add(time.Second/2), e)
		}
	}
	require.Zero(t, p.inFlight)
	require.Greater(t, calls, 1900*bears*7/10, "most of what the provider bears is used")
	require.Less(t, refused, calls*4/100)
}

// Those who are told to wait come back one after the other.
func TestPaceSpreadsThoseWhoWait(t *testing.T) {
	t.Parallel()
	p, now := &pace{bound: 1, usual: 2 * time.Second}, time.Now()
	require.Zero(t, p.enter(now))
	require.Equal(t, 2*time.Second, p.enter(now))
	require.Equal(t, 4*time.Second, p.enter(now))
	for range 100 {
		require.LessOrEqual(t, p.enter(now), longestTail)
	}
}

func TestPaceHeedsClasses(t *testing.T) {
	t.Parallel()
	for class, refused := range map[llm.Class]bool{
		llm.ClassRateLimited: true, llm.ClassOverloaded: true, llm.ClassServer: false, llm.ClassTimeout: false,
		llm.ClassAuth: false, llm.ClassSpendLimit: false, llm.ClassRefused: false,
	} {
		e := endOf(true, &llm.Error{Class: class, RetryAfter: time.Minute}, 0)
		require.Equal(t, refused, e.refused, class)
		require.False(t, e.answered)
		if refused {
			require.Equal(t, time.Minute, e.leave)
		}
	}
}

func TestLiveTextHidesAKeyHoweverItIsCut(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789"
	text := "key: " + secret + ", sk-, " + secret + secret + " end of it"
	for size := 1; size < len(text); size++ {
		var shown string
		mask := newLiveMask(secret, func(piece string) { shown += piece })
		for at := 0; at < len(text); at += size {
			mask.write(text[at:min(at+size, len(text))])
		}
		require.Equal(t, "key: [secret provider key], sk-, [secret provider key][secret provider key] end of it", shown, size)
	}
}
