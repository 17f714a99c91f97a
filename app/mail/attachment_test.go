package mail_test

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
)

func attachment(name, mediaType, content string) mail.Attachment {
	return mail.Attachment{Name: name, Type: mediaType, Size: int64(len(content)), Digest: name, Data: []byte(content)}
}

func withFiles(files ...mail.Attachment) mail.Step {
	step := note()
	step.Attachments = files
	return step
}

// attached gives the files of a mail by name, with their types and contents.
func attached(t testing.TB, r received) map[string][2]string {
	t.Helper()
	message := parsed(t, r)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	out := map[string][2]string{}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		name := part.FileName()
		if name == "" {
			continue // the text
		}
		body, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, part))
		require.NoError(t, err)
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		require.NoError(t, err)
		out[name] = [2]string{kind, string(body)}
	}
}

// What was attached arrives, also at a second try, under the one Message-ID; names and
// types of files bring nothing into the mail's head (S64).
func TestAttachmentsArrive(t *testing.T) {
	t.Parallel()
	mx := startServer(t, nil)
	b := setup(t, mx.sender(t))
	_, err := b.sendStep(t, withFiles(
		attachment("report.pdf", "application/pdf", "%PDF"), attachment("../../etc/list.csv", "text/csv", "a,b\n1,2\n"),
		attachment("x\r\nBcc: evil@evil.example", "text/plain\r\nX-Evil: 1", "x"), attachment("mail.eml", "message/rfc822", "Subject: x\r\n\r\nx"),
	))
	require.NoError(t, err)
	got := mx.mails()
	require.Len(t, got, 1)
	require.NotContains(t, got[0].To, "evil@evil.example")
	require.Empty(t, parsed(t, got[0]).Header.Get("Bcc"))
	require.Empty(t, parsed(t, got[0]).Header.Get("X-Evil"))
	require.Equal(t, map[string][2]string{
		"report.pdf": {"application/pdf", "%PDF"}, "list.csv": {"text/csv", "a,b\n1,2\n"},
		"x Bcc_ evil@evil.example": {"application/octet-stream", "x"}, "mail.eml": {"application/octet-stream", "Subject: x\r\n\r\nx"},
	}, attached(t, got[0]))
}

func TestAttachmentsAtASecondTry(t *testing.T) {
	t.Parallel()
	sender := &recorder{do: func(n int) error {
		if n == 1 {
			return &mail.SendError{Message: "busy"}
		}
		return nil
	}}
	b := setup(t, sender)
	step := withFiles(attachment("report.pdf", "application/pdf", "%PDF"))
	_, err := b.sendStep(t, step)
	require.Error(t, err)
	_, err = b.sendStep(t, step)
	require.NoError(t, err)
	require.Equal(t, sender.sent[0], sender.sent[1])
	require.Equal(t, "%PDF", string(sender.sent[1].Attachments[0].Data))
}

func TestAttachmentsThatAreTooMuch(t *testing.T) {
	t.Parallel()
	sender := &recorder{}
	b := setup(t, sender)
	many := make([]mail.Attachment, 21)
	large := mail.Attachment{Name: "large", Size: 16 << 20, Digest: "large", Data: make([]byte, 16<<20)}
	for name, files := range map[string][]mail.Attachment{"attachments and may have 20": many, "MB and may have 15": {large}} {
		_, err := b.sendStep(t, withFiles(files...))
		require.ErrorIs(t, err, mail.ErrBadMessage)
		require.True(t, strings.Contains(err.Error(), name), err)
	}
	require.Empty(t, sender.sent)
}
