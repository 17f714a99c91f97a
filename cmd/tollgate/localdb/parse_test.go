//go:build unix

package localdb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pidFileText = "4711\n/data/postgres\n1790000000\n5433\n\n127.0.0.1\n  2051   98304\nready   \n"

func TestPIDFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want pidFile
		bad  bool
	}{
		"ready":          {pidFileText, pidFile{4711, true}, false},
		"starting":       {strings.Replace(pidFileText, "ready   ", "starting", 1), pidFile{4711, false}, false},
		"stopping":       {strings.Replace(pidFileText, "ready   ", "stopping", 1), pidFile{4711, false}, false},
		"half written":   {pidFileText[:20], pidFile{4711, false}, false},
		"empty":          {"", pidFile{}, true},
		"single user":    {strings.Replace(pidFileText, "4711", "-4711", 1), pidFile{}, true},
		"init":           {strings.Replace(pidFileText, "4711", "1", 1), pidFile{}, true},
		"our group":      {strings.Replace(pidFileText, "4711", "0", 1), pidFile{}, true},
		"beyond numbers": {strings.Replace(pidFileText, "4711", strings.Repeat("9", 40), 1), pidFile{}, true},
	} {
		got, err := parsePIDFile(c.text)
		require.Equal(t, c.bad, err != nil, name)
		require.Equal(t, c.want, got, name)
	}
}

// FuzzPIDFile: whatever the file says, no signal may go to a group or to init.
func FuzzPIDFile(f *testing.F) {
	f.Add(pidFileText)
	f.Add("-1\n")
	f.Add("\x00\n\n\n\n\n\n\nready")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parsePIDFile(text)
		if err == nil && got.pid <= 1 {
			t.Errorf("process %d from %q", got.pid, text)
		}
	})
}

// TestListing has the lines of a machine with two servers, an editor that has the
// path open, and a zombie.
func TestListing(t *testing.T) {
	t.Parallel()
	const data, cluster = "/Users/ann/Library/Application Support/tollgate/postgres", "tollgate-0123456789ab"
	listing := `
    1 Ss   /sbin/launchd
  501 S+   /opt/homebrew/bin/postgres -D ` + data + ` -p 5433 -c listen_addresses=127.0.0.1
  502 Ss   postgres: ` + cluster + `: checkpointer
  503 Rs   postgres: ` + cluster + `: tollgate tollgate 127.0.0.1(50000) SELECT
  504 Z    postgres: ` + cluster + `: tollgate tollgate 127.0.0.1(50001) idle
  601 S    /opt/homebrew/bin/postgres -D ` + data + `2 -p 5434
  602 Ss   postgres: tollgate-ffffffffffff: checkpointer
  603 Ss   postgres: checkpointer
  701 S+   vi ` + data + `/postgresql.conf
  bad line`
	require.Equal(t, []int{501, 502, 503}, pidsInListing(listing, data, cluster))
}

// TestFailedStartIsExplained reads the reason from this start's part of the log.
func TestFailedStartIsExplained(t *testing.T) {
	t.Parallel()
	h := home{dir: t.TempDir()}
	earlier := "FATAL:  an older trouble\n"
	write := func(text string) {
		require.NoError(t, os.WriteFile(h.log(), []byte(earlier+text), 0o600))
	}
	from := int64(len(earlier))

	write("2026-01-01 UTC [7] LOG:  starting\n2026-01-01 UTC [7] FATAL:  data directory is locked\n")
	err := h.explain(errExited, from)
	require.ErrorIs(t, err, errExited)
	require.ErrorContains(t, err, "data directory is locked")
	require.ErrorContains(t, err, h.log())
	require.NotContains(t, err.Error(), "older trouble")

	write("LOG:  could not bind IPv4 address \"127.0.0.1\": Address already in use\nFATAL:  could not create any TCP/IP sockets\n")
	require.ErrorIs(t, h.explain(errExited, from), errPortTaken)

	require.NoError(t, os.Remove(h.log()))
	require.ErrorIs(t, h.explain(errExited, from), errExited)
}

func TestLongLogIsPutAside(t *testing.T) {
	t.Parallel()
	h := home{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(h.log(), nil, 0o600))
	require.NoError(t, os.Truncate(h.log(), logLimit+1))
	f, from, err := h.openLog()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Zero(t, from)
	info, err := os.Stat(h.log() + ".old")
	require.NoError(t, err)
	require.Equal(t, int64(logLimit+1), info.Size())
}

func TestDefaultDirIsAbsolute(t *testing.T) {
	t.Parallel()
	dir, err := DefaultDir()
	if err != nil {
		require.ErrorContains(t, err, "--data")
		return
	}
	require.True(t, filepath.IsAbs(dir))
	require.Equal(t, "tollgate", filepath.Base(dir))
}
