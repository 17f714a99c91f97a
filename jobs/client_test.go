package jobs

import (
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"
)

func TestPausesBetweenTriesDoubleUpToAMinute(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 30_000: time.Minute,
	} {
		next := doubling{}.NextRetry(&rivertype.JobRow{Attempt: attempt})
		require.InDelta(t, want.Seconds(), time.Until(next).Seconds(), 0.5, "attempt %d", attempt)
	}
}
