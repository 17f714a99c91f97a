package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDurationsReadAsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"90s": "1m 30s", "15m": "15m", "2h": "2h", "3d": "3d", "2w": "2w", "1d 12h": "1d 12h",
		"36h": "1d 12h", " 1h30m ": "1h 30m", "1098d": "156w 6d",
	} {
		d, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d.String())
		again, err := ParseDuration(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	}
	for _, text := range []string{"", "0s", "5", "h", "1.5h", "-1h", "1h -1m", "1099d", "99999999999999w", "1y", "2 h"} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, "is not a time span", text)
	}
}
