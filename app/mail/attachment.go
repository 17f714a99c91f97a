package mail

import (
	"bytes"
	"fmt"
	"mime"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// Attachment is a file that goes with a mail. The outbox keeps what it is, not its bytes:
// whoever sends the mail hands them over each time.
type Attachment struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"` // by which the bytes are told
	Data   []byte `json:"-"`
}

// Bounds of what one mail carries. Many servers take 25 MB, and on the way everything
// grows by a third.
const (
	maxAttachments = 20
	maxAttached    = 15 << 20
)

// anyFile is the type of a file whose own is none that a mail can name.
const anyFile = "application/octet-stream"

// cleanedFiles makes names fit for a mail's head; too much of it is refused.
func cleanedFiles(files []Attachment) ([]Attachment, error) {
	if len(files) > maxAttachments {
		return nil, fmt.Errorf("%w: it has %d attachments and may have %d", ErrBadMessage, len(files), maxAttachments)
	}
	var out []Attachment
	size := int64(0)
	for _, file := range files {
		file.Name = line(file.Name[strings.LastIndexAny(file.Name, `/\`)+1:], maxName)
		if file.Name == "" {
			file.Name = "attachment"
		}
		mediaType, _, err := mime.ParseMediaType(file.Type)
		if err != nil || strings.HasPrefix(mediaType, "multipart/") || strings.HasPrefix(mediaType, "message/") {
			mediaType = anyFile // a mail within a mail is taken apart by some that receive it
		}
		file.Type = mediaType
		size += file.Size
		out = append(out, file)
	}
	if size > maxAttached {
		return nil, fmt.Errorf("%w: its attachments have %d MB and may have %d", ErrBadMessage, size>>20, maxAttached>>20)
	}
	return out, nil
}

// filled gives the attachments their bytes, as far as the files have them.
func filled(attachments, files []Attachment) ([]Attachment, error) {
	var out []Attachment
	for _, one := range attachments {
		for _, file := range files {
			if file.Digest == one.Digest {
				one.Data = file.Data
			}
		}
		if int64(len(one.Data)) != one.Size {
			return nil, fmt.Errorf("the attachment %q is not at hand", one.Name)
		}
		out = append(out, one)
	}
	return out, nil
}

// attach adds the files to the mail for the wire.
func (c Composed) attach(message *gomail.Msg) error {
	for _, file := range c.Attachments {
		err := message.AttachReader(file.Name, bytes.NewReader(file.Data), gomail.WithFileContentType(gomail.ContentType(file.Type)))
		if err != nil {
			return fmt.Errorf("attach a file: %w", err)
		}
	}
	return nil
}
