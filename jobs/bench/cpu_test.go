package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// meter tells how much processor time this process and the server beside it have used.
// On a machine that is busy with other things it says more than the time that passed.
type meter struct{ postmaster string }

// newMeter finds the server's first process. Where there is no /proc, or the server is
// elsewhere, the meter knows of this process only.
func newMeter(t *testing.T, server string) meter {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var backend int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend))
	return meter{parentOf(strconv.Itoa(backend))}
}

// used is the processor time since the processes began.
func (m meter) used() time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0
	}
	sum := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if m.postmaster == "" {
		return sum
	}
	const user, childrenSystem = 14 - 3, 17 - 3 // places in the file, behind the name
	for place := user; place <= childrenSystem; place++ {
		sum += ticks(statOf(m.postmaster), place)
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, one := range all {
		if fields := statOf(filepath.Base(one)); len(fields) > 1 && fields[1] == m.postmaster {
			sum += ticks(fields, user) + ticks(fields, user+1)
		}
	}
	return sum
}

// ticks reads a count of hundredths of a second.
func ticks(fields []string, place int) time.Duration {
	if place >= len(fields) {
		return 0
	}
	n, _ := strconv.ParseInt(fields[place], 10, 64)
	return time.Duration(n) * 10 * time.Millisecond
}

func parentOf(pid string) string {
	if fields := statOf(pid); len(fields) > 1 {
		return fields[1]
	}
	return ""
}

// statOf reads what the kernel tells of a process, from its state on: the name before it
// may hold anything.
func statOf(pid string) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
