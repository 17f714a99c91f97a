//go:build unix

package localdb

import (
	"errors"
	"strconv"
	"strings"
)

// pidFile is the part of postmaster.pid that we need.
type pidFile struct {
	pid   int
	ready bool
}

func (h *home) readPIDFile() (pidFile, error) {
	raw, err := readSmall(h.pidFile(), 64<<10)
	if err != nil {
		return pidFile{}, err
	}
	return parsePIDFile(string(raw))
}

// parsePIDFile reads line 1, the process, and line 8, the state, which is missing
// while the server starts.
func parsePIDFile(text string) (pidFile, error) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return pidFile{}, errors.New("postmaster.pid names no process")
	}
	ready := len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	return pidFile{pid: pid, ready: ready}, nil
}
