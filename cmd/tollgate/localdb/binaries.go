//go:build unix

package localdb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binaries is one installed Postgres.
type binaries struct {
	dir   string // holds initdb and postgres
	major int
}

func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }
func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }

// oldestMajor is the oldest Postgres whose features the migrations may use.
const oldestMajor = 15

// binVariable names a folder that overrides every other place.
const binVariable = "TOLLGATE_PG_BIN"

// installedPlaces lists folders that may hold Postgres, best first.
func installedPlaces() []string {
	var places []string
	if path, err := exec.LookPath("postgres"); err == nil {
		places = append(places, filepath.Dir(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			places = append(places, filepath.Dir(real))
		}
	}
	if dir := bindirOfPgConfig(); dir != "" {
		places = append(places, dir)
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
		"/usr/pgsql-*/bin",          // Red Hat
		"/usr/libexec/postgresql*",  // Alpine
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		places = append(places, newestFirst(pattern)...)
	}
	return places
}

// bindirOfPgConfig asks the tool that development packages put into PATH.
func bindirOfPgConfig() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if dir := strings.TrimSpace(string(out)); err == nil && filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

var versionInName = regexp.MustCompile(`\d+(\.\d+)?`)

// newestFirst sorts the folders of a pattern by the version in their names, as a
// number: 9.6 is older than 15.
func newestFirst(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // the patterns are constants
	version := func(dir string) float64 {
		numbers := versionInName.FindAllString(dir, -1)
		if len(numbers) == 0 {
			return 0
		}
		n, _ := strconv.ParseFloat(numbers[len(numbers)-1], 64) // the pattern only matches numbers
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}

// survey is what was found on the machine, for the choice and for its sentence.
type survey struct {
	usable []binaries
	old    []binaries
}

// look tries each place as the account that will run Postgres, so that binaries it
// cannot reach or load do not count.
func look(ctx context.Context, places []string, a account) survey {
	var s survey
	seen := map[string]bool{}
	for _, dir := range places {
		if seen[dir] {
			continue
		}
		seen[dir] = true
		major, err := tryBinaries(ctx, dir, a)
		switch b := (binaries{dir: dir, major: major}); {
		case err != nil:
		case major < oldestMajor:
			s.old = append(s.old, b)
		default:
			s.usable = append(s.usable, b)
		}
	}
	return s
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// tryBinaries runs postgres for its version and checks that initdb is beside it.
func tryBinaries(ctx context.Context, dir string, a account) (int, error) {
	b := binaries{dir: dir}
	for _, path := range []string{b.initdb(), b.postgres()} {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		if !info.Mode().IsRegular() {
			return 0, fmt.Errorf("%s is not a program", path)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.Command(b.postgres(), "--version")
	cmd.Dir, cmd.Env, cmd.Stdout = "/", childEnv(), &out
	if err := runChild(ctx, cmd, a); err != nil {
		return 0, fmt.Errorf("run %s: %w", b.postgres(), err)
	}
	match := versionLine.FindSubmatch(out.Bytes())
	if match == nil {
		return 0, fmt.Errorf("%s does not say its version", b.postgres())
	}
	return strconv.Atoi(string(match[1]))
}
