//go:build unix

package localdb

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// logLimit is the size at which a new log is begun; one old log is kept.
const logLimit = 8 << 20

// openLog opens the log for appending and says where this start's part begins.
func (h *home) openLog() (*os.File, int64, error) {
	if info, err := os.Stat(h.log()); err == nil && info.Size() > logLimit {
		_ = os.Rename(h.log(), h.log()+".old")
	}
	f, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, unusable(h.log(), err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, unusable(h.log(), err)
	}
	return f, info.Size(), nil
}

// explain adds to a failed start the reason that Postgres wrote into its log.
func (h *home) explain(err error, from int64) error {
	written := h.logSince(from)
	if strings.Contains(written, "could not bind") && strings.Contains(written, "could not create any TCP/IP sockets") {
		return errPortTaken
	}
	reason := ""
	for line := range strings.Lines(written) {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(line, level); ok {
				reason = ": " + strings.TrimSpace(text)
			}
		}
	}
	return fmt.Errorf("the local Postgres did not start (%w)%s: see %s", err, reason, h.log())
}

func (h *home) logSince(from int64) string {
	f, err := os.Open(h.log())
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
	if err != nil {
		return ""
	}
	return string(raw)
}
