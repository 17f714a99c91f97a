//go:build unix

package localdb

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	ephemeralPrefix = "tollgate-pg-"
	// ephemeralGrace protects a folder that another process has made and not yet
	// locked.
	ephemeralGrace = 2 * time.Minute
	// memoryWanted leaves room for several test processes with many databases each.
	// Containers often offer 64 MiB only.
	memoryWanted = 4 << 30
)

// settings differ only where durability may be traded for speed.
func (o Options) settings() []string {
	if !o.Ephemeral {
		return []string{"fsync=on", "full_page_writes=on"}
	}
	return []string{
		"max_connections=200", "shared_buffers=64MB",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"dynamic_shared_memory_type=mmap", // in the folder, so that it goes with the folder
	}
}

// folder is the one to open, made in the case of an ephemeral one.
func (o Options) folder() (string, error) {
	if !o.Ephemeral {
		if o.Dir != "" {
			return o.Dir, nil
		}
		return DefaultDir()
	}
	root := tempRoot()
	for _, place := range []string{root, os.TempDir()} {
		sweepEphemeral(place)
	}
	dir, err := os.MkdirTemp(root, ephemeralPrefix)
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}
	if accountFor("").drop {
		if err := os.Chmod(dir, 0o711); err != nil {
			return "", fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	return dir, nil
}

// tempRoot is memory where the system offers enough of it as a folder: a server
// whose data nobody keeps should not wait for a disk. Otherwise it is the temp
// folder, unless Postgres's user may not enter it.
func tempRoot() string {
	dir := os.TempDir()
	switch {
	case memoryRoom("/dev/shm") >= memoryWanted:
		return "/dev/shm"
	case accountFor("").blockedAt(dir) != "":
		return "/tmp"
	default:
		return dir
	}
}

// sweepEphemeral removes folders whose process and its reaper were killed before they
// could. Whoever is alive holds the lock.
func sweepEphemeral(root string) {
	left, _ := filepath.Glob(filepath.Join(escapeGlob(root), ephemeralPrefix+"*"))
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < ephemeralGrace {
			continue
		}
		if uid, _, ok := owner(dir); !ok || uid != os.Geteuid() {
			continue
		}
		if !locked(filepath.Join(dir, lockName)) {
			_ = os.RemoveAll(dir)
		}
	}
}

func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
