package mail

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"tollgate/tenants"
)

const product = "Tollgate"

//go:embed templates
var templates embed.FS

// The templates are part of the program, so a broken one stops it at start.
var (
	funcs     = map[string]any{"lines": lines, "paragraphs": paragraphs}
	htmlPages = htmltemplate.Must(htmltemplate.New("").Funcs(funcs).ParseFS(templates, "templates/*.html"))
	textPages = texttemplate.Must(texttemplate.New("").Funcs(funcs).ParseFS(templates, "templates/*.txt"))
)

// Links makes what a mail carries to prove that it was received, at the moment of
// sending: the database never holds any of it.
type Links struct {
	Secret  tenants.Secret
	BaseURL string // of the pages, without a slash at its end
}

// Review is the address of a seat's page.
func (l Links) Review(seat [16]byte, generation int) string {
	return l.BaseURL + "/r/" + l.Secret.SeatToken(seat, generation)
}

// Digits are the digits of a sign-in code.
func (l Links) Digits(code tenants.LoginCodeID) string { return tenants.LoginDigits(l.Secret, code) }

// Composed is a mail that is ready to go out.
type Composed struct {
	MessageID string
	Date      time.Time
	From      Address
	To        []Address
	CC        []Address
	ReplyTo   *Address
	Subject   string
	Text      string
	HTML      string

	Attachments []Attachment
}

// composing is what a body needs to become text and HTML.
type composing struct {
	mail      Mail
	workspace string // name of the tenant; empty for the system's own mails
	links     Links
	now       time.Time
}

// parts are what a body contributes to a mail.
type parts struct {
	fromName   string
	text, html string
	to, cc     []Address
	replyTo    *Address

	attachments []Attachment
}

// page is what all templates see.
type page struct {
	Subject   string
	Preview   string // the line that inboxes show beside the subject
	Workspace string
	Tagline   string
	Address   string // to whom it goes
	Reference string
}

func (c composing) page(subject, preview, tagline string) page {
	workspace := c.workspace
	if workspace == "" {
		workspace = product
	}
	return page{
		Subject: subject, Preview: preview, Workspace: workspace, Tagline: tagline,
		Address: c.mail.To.Email, Reference: c.mail.ID.Short(),
	}
}

// compose makes the mail whole. The same row gives the same mail each time, but for
// the links' host and the wording of a newer program.
func compose(c composing, from Address) (Composed, error) {
	body, err := bodyOf(c.mail.Kind, c.mail.data)
	if err != nil {
		return Composed{}, err
	}
	c.workspace = line(c.workspace, maxName)
	made, err := body.compose(c)
	if err != nil {
		return Composed{}, err
	}
	out := Composed{
		MessageID: c.mail.MessageID, Date: c.mail.CreatedAt, Subject: c.mail.Subject,
		From: Address{Name: line(made.fromName, maxName), Email: from.Email},
		To:   made.to, CC: made.cc, ReplyTo: made.replyTo, Text: made.text, HTML: made.html,
		Attachments: made.attachments,
	}
	if len(out.To) == 0 {
		out.To = []Address{c.mail.To}
	}
	return out, nil
}

func (c composing) render(name, fromName string, data any) (parts, error) {
	var html, text bytes.Buffer
	if err := htmlPages.ExecuteTemplate(&html, name+".html", data); err != nil {
		return parts{}, fmt.Errorf("compose a mail: %w", err)
	}
	if err := textPages.ExecuteTemplate(&text, name+".txt", data); err != nil {
		return parts{}, fmt.Errorf("compose a mail: %w", err)
	}
	return parts{fromName: fromName, html: html.String(), text: text.String()}, nil
}

// when writes a time the way its reader's clock shows it, always with the zone; the
// year only where it is not this one.
func when(t time.Time, thisYear int, zone string) string {
	place, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		place = time.UTC
	}
	t = t.In(place)
	layout := "Mon 2 Jan, 15:04 "
	if t.Year() != thisYear {
		layout = "Mon 2 Jan 2006, 15:04 "
	}
	name := t.Format("MST")
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		name = "UTC" + name
	}
	return t.Format(layout) + name
}

func lines(s string) []string { return strings.Split(s, "\n") }

// paragraphs are parted by empty lines.
func paragraphs(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, "\n\n") {
		if part = strings.Trim(part, "\n"); part != "" {
			out = append(out, part)
		}
	}
	return out
}
