//go:build unix

package localdb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lockFile takes the folder's lock for our process. The kernel gives it back when
// we end, however we end, so a lock that is taken means a living owner. Children
// do not inherit the file, so Postgres outliving us keeps no lock.
func lockFile(path, dir string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, unusable(path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		return nil, fmt.Errorf("%s is in use by another tollgate%s: stop that one, or choose another folder with --data", dir, holder(f))
	}
	if err != nil {
		f.Close()
		return nil, unusable(path, err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // only for the sentence above
	}
	return f, nil
}

// holder names the owner's process where its lock file says one.
func holder(f *os.File) string {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
