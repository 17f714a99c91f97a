package pipeline

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Bounds of an e-mail.
const (
	maxMailHeader = 256 << 10 // bytes before the first empty line
	maxMailDepth  = 10        // parts inside parts
	maxMailParts  = 200
)

// readEML takes an e-mail apart. text is what a person would read of it.
func readEML(into map[string]any, data []byte) error {
	if err := checkHeader(data); err != nil {
		return err
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return errors.New("it does not begin with the header of an e-mail")
	}
	heads, err := mailHeads(into, m.Header)
	if err != nil {
		return err
	}
	c := collector{}
	if err := c.part(textproto.MIMEHeader(m.Header), m.Body, 0); err != nil {
		return err
	}
	body := c.body()
	into["body"], into["text"] = body, heads+"\n"+body
	if len(c.attachments) > 0 {
		into["attachments"] = c.attachments
	}
	return nil
}

// checkHeader bounds the header before anything parses it.
func checkHeader(data []byte) error {
	head := data
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if i := bytes.Index(head, []byte(end)); i >= 0 {
			head = head[:i]
		}
	}
	if len(head) > maxMailHeader {
		return fmt.Errorf("its header is longer than %d bytes", maxMailHeader)
	}
	return nil
}

// mailHeads reads the header and gives it back as people read it.
func mailHeads(into map[string]any, h mail.Header) (string, error) {
	from, name := firstAddress(h.Get("From"))
	replyTo, _ := firstAddress(h.Get("Reply-To"))
	subject, err := words(h.Get("Subject"))
	if err != nil {
		return "", fmt.Errorf("its subject: %w", err)
	}
	date := ""
	if t, err := h.Date(); err == nil {
		date = t.Format(time.RFC3339)
	}
	var shown strings.Builder
	for _, e := range []struct{ key, label, value string }{
		{"from", "From", from}, {"from_name", "", name}, {"reply_to", "", replyTo}, {"to", "To", allAddresses(h.Get("To"))},
		{"subject", "Subject", subject}, {"date", "Date", date},
	} {
		if e.value == "" {
			continue
		}
		into[e.key] = e.value
		if e.label != "" {
			shown.WriteString(e.label + ": " + e.value + "\n")
		}
	}
	return shown.String(), nil
}

// words decodes a header value: its encoded words, in one line.
func words(s string) (string, error) {
	out, err := (&mime.WordDecoder{CharsetReader: charsetReader}).DecodeHeader(s)
	if err != nil {
		return "", errors.New("it is written in a way that cannot be decoded")
	}
	if !utf8.ValidString(out) || strings.ContainsRune(out, 0) {
		return "", errors.New("it holds something that is not text")
	}
	return strings.TrimSpace(oneLine(out)), nil
}

func parser() *mail.AddressParser {
	return &mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: charsetReader}}
}

// firstAddress is empty where the header has no address that can be read.
func firstAddress(s string) (address, name string) {
	list, err := parser().ParseList(s)
	if err != nil || len(list) == 0 || !utf8.ValidString(list[0].String()) || strings.ContainsFunc(list[0].Address, breaksLine) {
		return "", ""
	}
	// Many programs put encoded words in quotes, where the parser leaves them.
	if name, err = words(list[0].Name); err != nil {
		name = ""
	}
	return list[0].Address, name
}

// The header is for reading; a list that cannot be read is left out.
func allAddresses(s string) string {
	list, err := parser().ParseList(s)
	if err != nil {
		return ""
	}
	var out []string
	for _, a := range list {
		if utf8.ValidString(a.Address) && !strings.ContainsFunc(a.Address, breaksLine) {
			out = append(out, a.Address)
		}
	}
	return strings.Join(out, ", ")
}

// collector goes through the parts of a mail.
type collector struct {
	plain, html []string
	attachments []any
	parts       int
}

// body prefers plain text; a mail that has only HTML is stripped of it.
func (c *collector) body() string {
	if len(c.plain) > 0 {
		return strings.Join(c.plain, "\n\n")
	}
	var out []string
	for _, h := range c.html {
		out = append(out, textOfHTML(h))
	}
	return strings.Join(out, "\n\n")
}

// A part that says nothing of itself is plain text, as mails have been for ever.
func (c *collector) part(h textproto.MIMEHeader, body io.Reader, depth int) error {
	if c.parts++; c.parts > maxMailParts {
		return fmt.Errorf("it has more than %d parts", maxMailParts)
	}
	if depth > maxMailDepth {
		return fmt.Errorf("its parts are nested more than %d deep", maxMailDepth)
	}
	mediaType, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		mediaType, params = "text/plain", map[string]string{}
	}
	disposition, about, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	switch {
	case strings.HasPrefix(mediaType, "multipart/"):
		return c.multipart(body, params["boundary"], depth)
	case disposition == "attachment", !strings.HasPrefix(mediaType, "text/"):
		return c.attachment(mediaType, about["filename"]+params["name"], h, body)
	}
	text, err := partText(h, params["charset"], body)
	if err != nil {
		return err
	}
	if mediaType == "text/html" {
		c.html = append(c.html, text)
	} else {
		c.plain = append(c.plain, text)
	}
	return nil
}

// Raw parts are taken, because the reader would otherwise undo some encodings itself
// and hide that it did.
func (c *collector) multipart(body io.Reader, boundary string, depth int) error {
	if boundary == "" {
		return errors.New("it says that it has parts, but not how they are told apart")
	}
	r := multipart.NewReader(body, boundary)
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("it ends in the middle of a part, or a part is damaged")
		}
		if err := c.part(p.Header, p, depth+1); err != nil {
			return err
		}
	}
}

// attachment notes that there is a file; its bytes stay in the mail.
func (c *collector) attachment(mediaType, name string, h textproto.MIMEHeader, body io.Reader) error {
	size, err := io.Copy(io.Discard, transferred(h, body))
	if err != nil {
		return errors.New("an attachment is damaged")
	}
	if decoded, err := words(name); err == nil {
		name = decoded
	}
	c.attachments = append(c.attachments, map[string]any{
		"name": fileName(name), "type": strings.ToValidUTF8(oneLine(mediaType), "\uFFFD"),
		"size": json.Number(strconv.FormatInt(size, 10)),
	})
	return nil
}

// transferred undoes the encoding that a part travelled in.
func transferred(h textproto.MIMEHeader, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding"))) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	}
	return body
}

// partText decodes a part of text to UTF-8 with plain line breaks.
func partText(h textproto.MIMEHeader, charset string, body io.Reader) (string, error) {
	raw, err := io.ReadAll(transferred(h, body))
	if err != nil {
		return "", errors.New("a part is damaged: its encoding cannot be undone")
	}
	text := string(raw)
	if charset = strings.ToLower(charset); !isUTF8(charset) {
		if text, err = decoded(charset, raw); err != nil {
			return "", err
		}
	}
	switch {
	case !utf8.ValidString(text):
		return "", fmt.Errorf("a part is not UTF-8 text at its byte %d, though it says so", brokenAt([]byte(text)))
	case strings.ContainsRune(text, 0):
		return "", errors.New("a part holds a NUL byte, so it is not text")
	}
	return strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), " \t\n"), nil
}

func isUTF8(charset string) bool {
	switch charset {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return true
	}
	return false
}

// The names are those that browsers know, which are those that mail programs send.
func decoded(charset string, raw []byte) (string, error) {
	enc, err := htmlindex.Get(charset)
	if err != nil {
		return "", fmt.Errorf("a part is in the character set “%s”, which is not known", shown(charset))
	}
	out, err := enc.NewDecoder().Bytes(raw)
	if err != nil {
		return "", fmt.Errorf("a part is not in the character set “%s” that it names", shown(charset))
	}
	return string(out), nil
}

func charsetReader(charset string, r io.Reader) (io.Reader, error) {
	enc, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return enc.NewDecoder().Reader(r), nil
}
