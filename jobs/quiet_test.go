package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log that is asked to say the same over and over says it once in a while, with how
// often it did not.
func TestQuietLogDoesNotRepeatItself(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newQuiet(slog.New(slog.NewTextHandler(&out, nil))).With("queue", "q")
	began := time.Now()
	for n := range 100 {
		record := slog.NewRecord(began.Add(time.Duration(n)*100*time.Millisecond), slog.LevelError, "the database is away", 0)
		require.NoError(t, log.Handler().Handle(context.Background(), record))
	}
	log.Error("something else")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[1], "swallowed=49")
	require.Contains(t, lines[2], "something else")
}
