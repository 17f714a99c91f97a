package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tollgate/app/expr"
)

// format is a kind of file that the start form takes.
type format struct {
	mediaType string
	read      func(into map[string]any, data []byte) error
}

// formats are known by the ending of the file's name.
var formats = map[string]format{
	".txt":  {"text/plain", readTXT},
	".eml":  {"message/rfc822", readEML},
	".csv":  {"text/csv", readCSV},
	".json": {"application/json", readJSON},
	".pdf":  {"application/pdf", begins("%PDF-")},
	".png":  {"image/png", begins("\x89PNG\r\n\x1a\n")},
	".jpg":  {"image/jpeg", begins("\xff\xd8\xff")},
	".jpeg": {"image/jpeg", begins("\xff\xd8\xff")},
	".gif":  {"image/gif", begins("GIF8")},
	".webp": {"image/webp", begins("RIFF????WEBP")},
}

// ReadFile turns a file into the record that formulas see: name, type, size,
// digest (SHA-256 of the bytes, hexadecimal) and text; for an e-mail from,
// from_name, reply_to, to, subject, date, body and attachments, each only where
// the mail has it; for a table columns and rows; for JSON data. The text of images and
// PDF is empty: models and other systems read their bytes. Errors name the file and the
// reason.
func ReadFile(name string, data []byte) (map[string]any, error) {
	name = fileName(name)
	f, ok := formats[ending(name)]
	switch {
	case !ok:
		return nil, fmt.Errorf("the file “%s” is of a kind that cannot be read; choose a .txt, .eml, .csv, .json, .pdf, .png, .jpg, .gif or .webp file", shown(name))
	case len(data) > MaxInputFile:
		return nil, fmt.Errorf("the file “%s” is larger than %d MB", shown(name), MaxInputFile>>20)
	case len(data) == 0:
		return nil, fmt.Errorf("the file “%s” is empty", shown(name))
	}
	digest := sha256.Sum256(data)
	out := map[string]any{
		"name": name, "type": f.mediaType,
		"size":   json.Number(strconv.Itoa(len(data))),
		"digest": hex.EncodeToString(digest[:]),
	}
	if err := f.read(out, data); err != nil {
		return nil, fmt.Errorf("the file “%s” cannot be read: %w", shown(name), err)
	}
	return out, nil
}

// maxFileName is the most characters of a file's name that are kept.
const maxFileName = 200

// fileName keeps the last part of a name, in one line, its ending whole.
func fileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimSpace(oneLine(expr.Plain(name)))
	if r := []rune(name); len(r) > maxFileName {
		name = string(r[:maxFileName-10]) + "…" + ending(name)
	}
	return name
}

// Long “endings” are sentences with a full stop in them.
func ending(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || len(name)-i > 9 {
		return ""
	}
	return strings.ToLower(name[i:])
}

// plainText takes a file that is text as a whole, without its byte order mark.
func plainText(data []byte) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return "", fmt.Errorf("it has a NUL byte at byte %d, so it is not text; save it as UTF-8 text", i)
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("it is not UTF-8 text at byte %d; save it as UTF-8", brokenAt(data))
	}
	return string(data), nil
}

// brokenAt is the first byte that is not UTF-8.
func brokenAt(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

func readTXT(into map[string]any, data []byte) error {
	text, err := plainText(data)
	into["text"] = text
	return err
}

// begins takes a file that nothing here looks into, if it begins as its kind does; a
// question mark stands for any byte.
func begins(with string) func(map[string]any, []byte) error {
	return func(into map[string]any, data []byte) error {
		into["text"] = ""
		for i := range len(with) {
			if i >= len(data) || with[i] != '?' && data[i] != with[i] {
				return fmt.Errorf("it is not what its ending says; save it anew in that format")
			}
		}
		return nil
	}
}

// readJSON keeps the file's text and what it says.
func readJSON(into map[string]any, data []byte) error {
	text, err := plainText(data)
	if err != nil {
		return err
	}
	into["text"] = text
	into["data"], err = expr.DecodeJSON([]byte(text))
	return err
}
