package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Prefix is the path under which [Handler] expects to be mounted.
const Prefix = "/static/"

//go:embed css/*.css app.js favicon.svg icons.svg vendor/*.js
var files embed.FS

// mediaTypes are all the kinds of files we ship. They are fixed here because
// the tables of the operating system differ from machine to machine.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is one file ready to be sent.
type asset struct {
	url    string // with digest
	media  string
	etag   string
	plain  []byte
	packed []byte // gzip
}

// shelf holds every asset by its plain name and by its address.
type shelf struct {
	byName map[string]*asset
	byURL  map[string]*asset
}

var assets = load(files)

// URL gives the address of an asset by its plain name, such as "app.css",
// "icons.svg" or "vendor/htmx.min.js". The names are constants of the program,
// so an unknown one is a mistake in the code and panics.
func URL(name string) string {
	a, ok := assets.byName[name]
	if !ok {
		panic(fmt.Sprintf("static: there is no asset %q", name))
	}
	return a.url
}

// PackedSize gives the size of an asset in bytes as sent to a browser that
// takes gzip. Tests of page weight add these up.
func PackedSize(name string) int {
	return len(assets.byName[name].packed)
}

// load reads the embedded tree. The tree is part of the program, so a failure
// to read it cannot be handled and panics.
func load(tree fs.FS) shelf {
	s := shelf{byName: map[string]*asset{}, byURL: map[string]*asset{}}
	var sheet bytes.Buffer
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "css/") {
			sheet.Write(data)
			return nil
		}
		s.put(name, data)
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("static: read embedded files: %v", err))
	}
	s.put("app.css", sheet.Bytes())
	return s
}

func (s shelf) put(name string, data []byte) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:6])
	ext := path.Ext(name)
	a := &asset{
		url:    Prefix + strings.TrimSuffix(name, ext) + "." + digest + ext,
		media:  mediaTypes[ext],
		etag:   `"` + digest + `"`,
		plain:  data,
		packed: pack(data),
	}
	s.byName[name], s.byURL[a.url] = a, a
}

func pack(data []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(fmt.Sprintf("static: gzip: %v", err))
	}
	// Writing to memory cannot fail.
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}
