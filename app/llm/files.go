package llm

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"tollgate/app/llm/fields"
)

// Limits on files, below those of every provider.
const (
	// MaxFiles is how many files one request may carry.
	MaxFiles = 20
	// MaxFileBytes bounds all files of a request together.
	MaxFileBytes = 16 << 20
)

// What a file may cost in tokens at the most. Providers bill an image by its size in
// pixels, up to a ceiling that is below this for each of them; a document is billed by
// its pages, of which a small file can hide very many, so only the model's window
// bounds it (see Registry.InputBound).
const (
	imageTokens    = 16_384
	documentTokens = MaxTokensCeiling
)

// File is an image or a document for a model to look at.
type File struct {
	Name      string // for people and models; may be empty
	MediaType string // "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", or any text/…
	Content   []byte
	// Size is the length of Content in bytes where that is not at hand. It counts for
	// InputBound only: a file is never sent without its content.
	Size int64
}

// kind is how a file is given to a model.
type fileKind int

const (
	fileUnknown fileKind = iota
	fileImage
	filePDF
	fileText
)

func (f File) kind() fileKind {
	media, _, err := mime.ParseMediaType(f.MediaType)
	switch {
	case err != nil:
		return fileUnknown
	case media == "application/pdf":
		return filePDF
	case media == "image/png", media == "image/jpeg", media == "image/gif", media == "image/webp":
		return fileImage
	case strings.HasPrefix(media, "text/"), media == "application/json":
		return fileText
	}
	return fileUnknown
}

// media is the media type without parameters.
func (f File) media() string {
	media, _, _ := mime.ParseMediaType(f.MediaType) // kind has read it before
	return media
}

func (f File) base64() string { return base64.StdEncoding.EncodeToString(f.Content) }

// dataURL is the file as an address that holds it.
func (f File) dataURL() string { return "data:" + f.media() + ";base64," + f.base64() }

// title names the file for a model; providers want some name for a document.
func (f File) title() string {
	name, _ := fields.Clean(fields.Cut(f.Name, 200))
	if blank(name) {
		return "document"
	}
	return name
}

// asText is a text file as part of the prompt.
func (f File) asText() string {
	text, _ := fields.Clean(string(f.Content))
	return "File " + f.title() + ":\n" + text
}

// checkFiles refuses what no provider takes. The error is an *Error.
func checkFiles(files []File) error {
	if len(files) > MaxFiles {
		return invalid(fmt.Sprintf("The step gives the model %d files; at most %d can be sent at once.", len(files), MaxFiles))
	}
	size := 0
	for _, file := range files {
		size += len(file.Content)
		switch {
		case file.kind() == fileUnknown:
			return invalid(fmt.Sprintf("The file %q is of a kind that models do not take (%s). They take PNG, JPEG, GIF and WebP images, PDF and text.",
				file.title(), fields.Cut(file.MediaType, 60)))
		case len(file.Content) == 0:
			return invalid(fmt.Sprintf("The file %q is empty.", file.title()))
		case file.kind() == fileText && !utf8.Valid(file.Content):
			return invalid(fmt.Sprintf("The text file %q is not in UTF-8. Save it as UTF-8 first.", file.title()))
		case file.kind() == fileText && bytes.IndexByte(file.Content, 0) >= 0:
			return invalid(fmt.Sprintf("The file %q is said to be text and is none. Save it as plain text in UTF-8 first.", file.title()))
		case size > MaxFileBytes:
			return invalid(fmt.Sprintf("The files for the model have more than %d MB together. Give it fewer or smaller ones.", MaxFileBytes>>20))
		}
	}
	return nil
}

// fileBound is an upper bound of the tokens a file is billed as. Text that is sent is
// whole UTF-8 without NUL, as checkFiles sees to, so its size is what goes out.
func fileBound(f File) int64 {
	switch f.kind() {
	case fileImage:
		return imageTokens
	case filePDF:
		return documentTokens
	case fileText, fileUnknown:
	}
	return max(wireBytes(string(f.Content)), f.Size) + wireBytes(f.Name) + requestOverhead
}
