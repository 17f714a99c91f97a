//go:build unix

package localdb

import (
	"context"
	"fmt"
	"os"
)

// chooser picks the binaries for a data folder.
type chooser struct {
	opts    Options
	account account
	dir     string // the data folder, for sentences
}

// choose returns binaries of the wanted major version, or of the best version
// found when want is 0 (no data yet).
func (c chooser) choose(ctx context.Context, want int) (binaries, error) {
	if dir := os.Getenv(binVariable); dir != "" {
		return c.named(ctx, dir, want)
	}
	places := installedPlaces
	if c.opts.places != nil {
		places = c.opts.places
	}
	found := look(ctx, places(), c.account)
	if b, ok := fitting(found.usable, want); ok {
		return b, nil
	}
	if len(found.usable) > 0 {
		return binaries{}, c.mismatch(want, found.usable[0])
	}
	return binaries{}, c.missing(found, want)
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
	return fmt.Errorf("the data in %s was made by Postgres %d, but only Postgres %d was found (%s): install Postgres %d, or choose another folder with --data", c.dir, want, found.major, found.dir, want)
}

func (c chooser) missing(found survey, want int) error {
	what := "no Postgres was found"
	if len(found.old) > 0 {
		what = fmt.Sprintf("only Postgres %d was found (%s), which is too old", found.old[0].major, found.old[0].dir)
	}
	wanted := ""
	if want != 0 {
		wanted = fmt.Sprintf(" version %d", want)
	}
	return fmt.Errorf("%s: install Postgres%s (apt-get install postgresql, or brew install postgresql@17), run again with --download-postgres, or set DATABASE_URL", what, wanted)
}
