//go:build unix

package localdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// home is the folder of one database, locked for us, and the paths inside it.
type home struct {
	dir     string // absolute and free of symbolic links, as /proc shows it
	account account
	lock    *os.File
}

// The names inside the folder. Other parts of the program may keep files beside
// these; nothing else in the folder is touched.
const (
	dataName      = "postgres"
	passwordsName = "passwords.json"
	logName       = "postgres.log"
	lockName      = "lock"
	stagingPrefix = ".initdb-"
)

func (h *home) data() string      { return filepath.Join(h.dir, dataName) }
func (h *home) passwords() string { return filepath.Join(h.dir, passwordsName) }
func (h *home) log() string       { return filepath.Join(h.dir, logName) }
func (h *home) pidFile() string   { return filepath.Join(h.data(), "postmaster.pid") }

// openHome makes the folder where it is missing and takes its lock. The error is
// a sentence for the person who named the folder.
func openHome(dir string) (*home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the data folder: %w", err)
	}
	h := &home{account: accountFor(filepath.Join(dir, dataName))}
	leaf := os.FileMode(0o700)
	if h.account.drop {
		leaf = 0o711
	}
	if err := h.makeDir(dir, leaf); err != nil {
		return nil, err
	}
	if h.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, unusable(dir, err)
	}
	if blocked := h.account.blockedAt(h.dir); blocked != "" {
		return nil, blockedError(h.dir, blocked, h.account)
	}
	if h.lock, err = lockFile(filepath.Join(h.dir, lockName), h.dir); err != nil {
		return nil, err
	}
	return h, nil
}

// close gives the lock back. Closing the file alone would leave it taken for a
// moment when another goroutine is just starting a child, which has a copy of the
// file until it runs its program.
func (h *home) close() {
	_ = syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN)
	_ = h.lock.Close()
}

// makeDir creates the folder and its missing parents. Those made by root are open
// for entering, whatever the umask, since Postgres runs as another user.
func (h *home) makeDir(dir string, mode os.FileMode) error {
	if blocked := h.account.blockedAt(filepath.Dir(dir)); blocked != "" {
		return blockedError(dir, blocked, h.account)
	}
	if parent := filepath.Dir(dir); parent != dir {
		if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
			if err := h.makeDir(parent, 0o755); err != nil {
				return err
			}
		}
	}
	err := os.Mkdir(dir, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return checkDir(dir)
	case err != nil:
		return unusable(dir, err)
	}
	if h.account.drop {
		return os.Chmod(dir, mode)
	}
	return nil
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return unusable(dir, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file, not a folder: choose a folder with --data", dir)
	}
	return nil
}

// dataMajor reads which Postgres made the data: its major version, or 0 where
// there is no data yet. A folder that is neither is refused, never cleaned up.
func (h *home) dataMajor() (int, error) {
	if _, err := os.Stat(filepath.Join(h.dir, "PG_VERSION")); err == nil {
		return 0, fmt.Errorf("%s is itself a Postgres data folder: choose another folder with --data, or set DATABASE_URL", h.dir)
	}
	entries, err := os.ReadDir(h.data())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, unusable(h.data(), err)
	case len(entries) == 0:
		return 0, nil
	}
	raw, err := readSmall(filepath.Join(h.data(), "PG_VERSION"), 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s holds files that are not a Postgres database: move them away, or choose another folder with --data", h.data())
	}
	if err != nil {
		return 0, unusable(h.data(), err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || major <= 0 {
		return 0, fmt.Errorf("%s does not say which Postgres made it: choose another folder with --data", h.data())
	}
	return major, nil
}

// checkOwner refuses data that Postgres would refuse to open, in better words.
func (h *home) checkOwner() error {
	uid, _, ok := owner(h.data())
	if !ok || uid == h.account.uid {
		return nil
	}
	return fmt.Errorf("%s belongs to another user: run as that user, hand it over with chown -R %s, or choose another folder with --data", h.data(), h.account)
}

func blockedError(dir, blocked string, a account) error {
	return fmt.Errorf("user %s, as whom Postgres would run, may not enter %s: choose another folder than %s with --data, or allow it with chmod o+x", a, blocked, dir)
}

// unusable turns a file error into a sentence about the folder.
func unusable(path string, err error) error {
	reason := err.Error()
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		path, reason = pathErr.Path, pathErr.Err.Error()
	}
	return fmt.Errorf("%s cannot be used (%s): choose another folder with --data", path, reason)
}
