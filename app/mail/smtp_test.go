package mail_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"regexp"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
)

func parsed(t testing.TB, r received) *netmail.Message {
	t.Helper()
	message, err := netmail.ReadMessage(bytes.NewReader(r.Data))
	require.NoError(t, err)
	return message
}

func header(t testing.TB, r received, name string) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(parsed(t, r).Header.Get(name))
	require.NoError(t, err)
	return text
}

var boundary = regexp.MustCompile(`[0-9a-f]{20,}`)

func stripBoundary(data []byte) []byte { return boundary.ReplaceAll(data, []byte("-")) }

// bodies gives the parts of a mail by type, decoded.
func bodies(t testing.TB, r received) map[string]string {
	t.Helper()
	message := parsed(t, r)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/alternative", kind)
	out := map[string]string{}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		require.NoError(t, err)
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		require.NoError(t, err)
		require.Equal(t, "utf-8", strings.ToLower(params["charset"]))
		out[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
}

func TestMailArrivesWhole(t *testing.T) {
	t.Parallel()
	mx := startServer(t, nil)
	b := setup(t, mx.sender(t))
	result, err := b.outbox.SendStep(t.Context(), b.db.DB, b.tenant, b.run, b.stepRun, mail.Step{
		To: []mail.Address{{Name: "Käthe Wölfing", Email: "kw@client.example"}, {Email: "jane@client.example"}},
		CC: []mail.Address{{Email: "copy@client.example"}}, ReplyTo: &mail.Address{Email: "help@acme.example"},
		Subject: "Ihre Erstattung über 420 €", Text: "Grüße 👋\n\n.\nein Punkt allein\n" + strings.Repeat("lang ", 500),
	})
	require.NoError(t, err)
	got := mx.mails()
	require.Len(t, got, 1)
	require.Equal(t, "no-reply@tollgate.example", got[0].From)
	require.Equal(t, []string{"kw@client.example", "jane@client.example", "copy@client.example"}, got[0].To)
	require.Equal(t, "Ihre Erstattung über 420 €", header(t, got[0], "Subject"))
	require.Equal(t, `Käthe Wölfing <kw@client.example>, <jane@client.example>`, header(t, got[0], "To"))
	require.Equal(t, "<help@acme.example>", header(t, got[0], "Reply-To"))
	require.Equal(t, "auto-generated", header(t, got[0], "Auto-Submitted"))
	require.Equal(t, "<"+result.MessageID+">", header(t, got[0], "Message-ID"))
	require.Equal(t, `"Test workspace" <no-reply@tollgate.example>`, header(t, got[0], "From"))
	parts := bodies(t, got[0])
	require.True(t, strings.HasPrefix(parts["text/plain"], "Grüße 👋\n\n.\nein Punkt allein\nlang lang"), parts["text/plain"])
	require.Contains(t, parts["text/html"], "Grüße 👋</p>")
	for line := range bytes.SplitSeq(got[0].Data, []byte("\r\n")) {
		require.LessOrEqual(t, len(line), 998)
	}
}

// A name, a subject or an address that holds line breaks must not become a header.
func TestHeadersCannotBeInjected(t *testing.T) {
	t.Parallel()
	for name, evil := range map[string]string{
		"crlf": "Hi\r\nBcc: x@evil.example", "lf": "Hi\nBcc: x@evil.example", "cr": "Hi\rBcc: x@evil.example",
		"body": "Hi\r\n\r\n<b>x</b>", "line separator": "Hi\u2028Bcc: x@evil.example", "next line": "Hi\u0085Bcc: x@evil.example",
		"nul": "Hi\x00\r\nBcc: x@evil.example", "quotes": "\"Hi\" <x@evil.example>, ", "folded": "Hi\r\n Bcc: x@evil.example",
		"encoded word": "=?utf-8?q?Hi=0D=0ABcc:_x@evil.example?=", "long": strings.Repeat("Hi\r\nBcc: x@evil.example ", 200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mx := startServer(t, nil)
			b := setup(t, mx.sender(t))
			_, err := b.db.Super(t).Exec(t.Context(), `UPDATE tenants SET name = left($1, 200)`, strings.ReplaceAll(evil, "\x00", ""))
			require.NoError(t, err)
			_, err = b.outbox.SendStep(t.Context(), b.db.DB, b.tenant, b.run, b.stepRun, mail.Step{
				To: []mail.Address{{Name: evil, Email: "jane@client.example"}}, ReplyTo: &mail.Address{Name: evil, Email: "re@client.example"},
				Subject: evil, Text: evil,
			})
			require.NoError(t, err)
			got := mx.mails()
			require.Len(t, got, 1)
			require.Equal(t, []string{"jane@client.example"}, got[0].To)
			message := parsed(t, got[0])
			require.Empty(t, message.Header["Bcc"])
			require.Len(t, message.Header["Subject"], 1)
			allowed := []string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Reply-To", "Subject", "To", "X-Auto-Response-Suppress"}
			for key := range message.Header {
				require.Contains(t, allowed, key)
			}
			for _, field := range []string{"From", "To", "Reply-To"} {
				list, err := message.Header.AddressList(field)
				require.NoError(t, err, message.Header.Get(field))
				require.Len(t, list, 1, field)
				require.NotContains(t, list[0].Address, "evil")
			}
			for kind := range bodies(t, got[0]) {
				require.Contains(t, []string{"text/plain", "text/html"}, kind)
			}
		})
	}
}

func TestServersAnswerGivesTheClass(t *testing.T) {
	t.Parallel()
	greylisted := &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
	unknown := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	tests := map[string]struct {
		answer    func(stage, rcpt string) error
		permanent bool
		says      string
	}{
		"recipient later":   {at("rcpt", greylisted), false, "The mail server refused a recipient."},
		"recipient unknown": {at("rcpt", unknown), true, "The mail server refused a recipient."},
		"content later":     {at("data", greylisted), false, "The mail server did not take the mail."},
		"content refused":   {at("data", unknown), true, "The mail server did not take the mail."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mx := startServer(t, test.answer)
			b := setup(t, mx.sender(t))
			_, err := b.outbox.SendStep(t.Context(), b.db.DB, b.tenant, b.run, b.stepRun, note())
			var failed *mail.SendError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, test.permanent, failed.Permanent)
			require.False(t, failed.Unsure)
			require.Equal(t, test.says, failed.Message)
		})
	}
}

// The connection breaks at a point of the talk: only where the whole mail was on the
// server is it unsure, and once the server has said yes, nothing after it matters.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	type outcome struct{ failed, unsure bool }
	for breaksAt, want := range map[string]outcome{
		"MAIL": {true, false}, "RCPT": {true, false}, "DATA": {true, false}, ".": {true, true}, "RSET": {false, false}, "QUIT": {false, false},
	} {
		t.Run(breaksAt, func(t *testing.T) {
			t.Parallel()
			sender, err := mail.NewSMTP("smtp://"+hangUpAt(t, breaksAt), "tollgate.example")
			require.NoError(t, err)
			err = sender.Send(t.Context(), mail.Composed{
				MessageID: "m@tollgate.example", From: mail.Address{Email: "a@b.example"}, To: []mail.Address{{Email: "c@d.example"}}, Subject: "x", Text: "x", HTML: "x",
			})
			var failed *mail.SendError
			require.Equal(t, want.failed, errors.As(err, &failed), "%v", err)
			if failed != nil {
				require.Equal(t, want.unsure, failed.Unsure, "%v", err)
				require.False(t, failed.Permanent)
			}
		})
	}
}

// hangUpAt starts a mail server that says yes to all until a client sends the given
// command, and then hangs up.
func hangUpAt(t *testing.T, command string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		talk(connection, command)
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().String()
}

func talk(connection net.Conn, breaksAt string) {
	lines, data := bufio.NewScanner(connection), false
	fmt.Fprint(connection, "220 mx.example ready\r\n")
	for lines.Scan() {
		line := lines.Text()
		if data && line != "." {
			continue
		}
		if strings.HasPrefix(line, breaksAt) {
			return
		}
		data = line == "DATA"
		switch {
		case strings.HasPrefix(line, "EHLO"):
			fmt.Fprint(connection, "250 mx.example\r\n")
		case data:
			fmt.Fprint(connection, "354 go on\r\n")
		default:
			fmt.Fprint(connection, "250 fine\r\n")
		}
	}
}

func at(stage string, answer error) func(string, string) error {
	return func(now, _ string) error {
		if now == stage {
			return answer
		}
		return nil
	}
}

func note() mail.Step {
	return mail.Step{To: []mail.Address{{Email: "jane@client.example"}}, Subject: "Your refund", Text: "Paid."}
}

func TestUnreachableServerIsTriedAgain(t *testing.T) {
	t.Parallel()
	sender, err := mail.NewSMTP("smtp://127.0.0.1:1", "tollgate.example")
	require.NoError(t, err)
	var failed *mail.SendError
	require.ErrorAs(t, sender.Send(t.Context(), mail.Composed{From: mail.Address{Email: "a@b.example"}, To: []mail.Address{{Email: "c@d.example"}}}), &failed)
	require.False(t, failed.Permanent)
	require.False(t, failed.Unsure)
}

// Without TLS nothing is said to a server that is not on this machine.
func TestStartTLSIsRequiredElsewhere(t *testing.T) {
	t.Parallel()
	mx := startServer(t, nil)
	sender, err := mail.NewSMTP("smtp://"+mx.addr+"?starttls=required", "tollgate.example")
	require.NoError(t, err)
	require.ErrorContains(t, sender.Send(t.Context(), mail.Composed{From: mail.Address{Email: "a@b.example"}, To: []mail.Address{{Email: "c@d.example"}}}), "cannot be reached")
	require.Empty(t, mx.mails())
}

func TestBadServerAddressesAreRefusedWithoutThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "mail.example", "http://u:hunter2@mail.example", "smtp://", "smtp://u:hunter2@mail.example:99999", "smtp://u:hunter2@mail.example:0",
		"smtp://u:hunter2@mail.example?starttls=maybe", "smtp://u:hunter2@mail.example:x", "smtp://u:hun%zzter2@mail.example",
	} {
		_, err := mail.NewSMTP(address, "tollgate.example")
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "zzter2")
	}
	for _, address := range []string{"smtp://mail.example", "smtps://u:p@mail.example", "smtp://u:p@mail.example:2525?starttls=optional", "smtp://[::1]:25"} {
		_, err := mail.NewSMTP(address, "tollgate.example")
		require.NoError(t, err, address)
	}
}
