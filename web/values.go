package web

import (
	"context"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// How much of a value a page reads. An input may be larger, since of its files only the
// names are shown.
const (
	previewBytes = ui.ShownAtMost
	inputBytes   = 256 << 10
)

// queryOf is a query string of names and values, without the empty ones.
func queryOf(pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// valueFile hands out a stored value as a file to keep. Whatever it holds, the browser
// never shows it as a page of ours.
func (s *Server) valueFile(v *visit) error {
	id, err := idParam[engine.Run](v, "run")
	if err != nil {
		return err
	}
	digest, err := engine.ParseDigest(v.Param("digest"))
	if err != nil {
		return errNotFound
	}
	var content engine.Content
	err = v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if _, err := engine.RunByID(ctx, tx, id); err != nil {
			return err
		}
		content, err = engine.ValueOf(ctx, tx, id, digest)
		return err
	})
	if err != nil {
		return err
	}
	ending, known := endings[content.MediaType]
	if !known {
		content.MediaType, ending = "application/octet-stream", ".bin"
	}
	h := v.Response().Header()
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(v.QueryParam("name"), digest) + ending}))
	h.Set("Content-Security-Policy", contentPolicy+"; sandbox")
	return v.Blob(http.StatusOK, content.MediaType, content.Bytes)
}

// endings of the kinds of values that are stored.
var endings = map[string]string{
	"application/json": ".json", "text/plain": ".txt", "text/csv": ".csv", "message/rfc822": ".eml",
	"application/pdf": ".pdf", "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
}

// fileName is the name that was asked for without its ending, which the kind of value
// decides, or the beginning of the digest.
func fileName(wished string, digest engine.Digest) string {
	wished, _ = ui.Cut(ui.Clean(wished), 120)
	if i := strings.LastIndexByte(wished, '.'); i > 0 {
		wished = wished[:i]
	}
	wished = strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '-'
		}
		return r
	}, wished), ". -")
	if wished == "" {
		return digest.String()[:12]
	}
	return wished
}

// valueView is a stored value on a page: by its fields where it can be taken apart, and
// as it is.
type valueView struct {
	ID       string
	Label    string
	Preview  engine.Preview
	Download string
	Fields   []pipeline.Field // that give the parts their names and order
	files    func(digest, name string) string
}

// pairs are the parts of a record by the names that people gave them; nil for all else.
func (v valueView) pairs() []ui.Pair {
	if !v.Preview.Whole() {
		return nil
	}
	var record map[string]json.RawMessage
	if json.Unmarshal(v.Preview.Bytes, &record) != nil {
		return nil
	}
	var pairs []ui.Pair
	for _, field := range v.Fields {
		if raw, ok := record[field.Name]; ok {
			pairs = append(pairs, v.pair(field, raw))
			delete(record, field.Name)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(record)) {
		pairs = append(pairs, v.pair(pipeline.Field{Name: name, Label: sentenceCase(spaced(name))}, record[name]))
	}
	return pairs
}

// pair shows one part the way its field says: a choice by its label, money with its
// currency, a file as a file. Everything else is shown by what it is.
func (v valueView) pair(field pipeline.Field, raw json.RawMessage) ui.Pair {
	pair := ui.Pair{Label: field.Title()}
	decoded, err := expr.DecodeJSON(raw)
	if err != nil {
		pair.Part = ui.Value{JSON: raw, Label: pair.Label}
		return pair
	}
	switch value := decoded.(type) {
	case string:
		for _, choice := range field.Choices {
			if choice.Value == value {
				pair.Value = choice.Title()
				return pair
			}
		}
	case map[string]any:
		if money, ok := moneyWords(field, value); ok {
			pair.Value = money
			return pair
		}
		if file, ok := v.file(field, value); ok {
			pair.Part = file
			return pair
		}
	}
	pair.Part = ui.Value{JSON: raw, Label: pair.Label}
	return pair
}

// moneyWords keep the digits of the amount.
func moneyWords(field pipeline.Field, value map[string]any) (string, bool) {
	amount, ok := value["amount"].(json.Number)
	currency, named := value["currency"].(string)
	if field.Type != pipeline.TypeMoney || !ok || !named {
		return "", false
	}
	return ui.Money(amount.String(), currency), true
}

// file is a file of the run's input.
func (v valueView) file(field pipeline.Field, value map[string]any) (ui.FileTag, bool) {
	name, named := value["name"].(string)
	digest, ok := value["digest"].(string)
	if field.Type != pipeline.TypeFile || !named || !ok || v.files == nil {
		return ui.FileTag{}, false
	}
	tag := ui.FileTag{Name: name, Href: v.files(digest, name)}
	if size, ok := value["size"].(json.Number); ok {
		tag.Size, _ = size.Int64() // of our own making; 0 where it is not
	}
	return tag, true
}

// raw is the value as it is stored.
func (v valueView) raw() ui.Code {
	return ui.Code{ID: v.ID + "-raw", Label: v.Label + ", raw", Text: v.text(), Size: v.Preview.Size, Download: v.Download}
}

// text is indented where the whole value is at hand; a piece of JSON cannot be.
func (v valueView) text() string {
	if !v.Preview.Whole() {
		return string(v.Preview.Bytes)
	}
	return ui.Pretty(v.Preview.Bytes)
}

// answer is the essence of the value, for the head of a fold.
func (v valueView) answer() string { return ui.Bytes(v.Preview.Size) }
