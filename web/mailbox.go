package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"tollgate/app/mail"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// mailboxView is the mail that in local mode stays on this computer.
type mailboxView struct {
	Mails []mail.Mail
	Now   time.Time
}

// mailView is one mail as its receiver would see it.
type mailView struct {
	Mail     mail.Mail
	Composed mail.Composed
	Links    []string // addresses of ours in the text
	AskCode  bool     // a code is waited for in this browser
	Now      time.Time
}

// mailPage and mailbox look into the demo workspace, those of whoever is signed in, and
// the system's own mail; nobody who uses this computer has a secret from it.
func (s *Server) mailbox(v *visit) error {
	view := mailboxView{}
	err := s.DB.InSystemTx(v.ctx(), func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		view.Now = stx.Now
		view.Mails, err = s.Outbox.ListSystem(ctx, stx)
		return err
	})
	if err != nil {
		return err
	}
	err = v.eachLocalTenant(func(ctx context.Context, tx tenants.Tx) error {
		mails, err := s.Outbox.List(ctx, tx)
		view.Mails = append(view.Mails, mails...)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(view.Mails, func(a, b mail.Mail) int { return cmp.Compare(b.ID.String(), a.ID.String()) })
	return v.page(http.StatusOK, v.alone("Mailbox"), mailboxBody(view))
}

func (s *Server) mailPage(v *visit) error {
	id, err := idParam[mail.Letter](v, "id")
	if err != nil {
		return err
	}
	view := mailView{AskCode: s.sessions.GetString(v.ctx(), sessionEmail) != ""}
	err = s.DB.InSystemTx(v.ctx(), func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		view.Now = stx.Now
		view.Mail, view.Composed, err = s.Outbox.SystemByID(ctx, stx, id)
		return err
	})
	if errors.Is(err, mail.ErrNotFound) {
		err = v.eachLocalTenant(func(ctx context.Context, tx tenants.Tx) error {
			if !view.Mail.ID.IsZero() {
				return nil
			}
			var err error
			view.Mail, view.Composed, err = s.Outbox.ByID(ctx, tx, id)
			if errors.Is(err, mail.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	switch {
	case err != nil:
		return err
	case view.Mail.ID.IsZero():
		return errNotFound
	}
	view.Links = s.linksIn(view.Composed.Text)
	return v.page(http.StatusOK, v.alone(view.Composed.Subject), mailBody(view))
}

// eachLocalTenant does something in the demo workspace and in those of whoever is
// signed in.
func (v *visit) eachLocalTenant(fn func(context.Context, tenants.Tx) error) error {
	people, err := v.demoPeople()
	if err != nil {
		return err
	}
	if !v.user.IsZero() {
		own, err := v.memberships()
		if err != nil {
			return err
		}
		people = append(people, own...)
	}
	done := map[tenants.ID]bool{}
	for _, person := range people {
		if done[person.Tenant.ID] {
			continue
		}
		done[person.Tenant.ID] = true
		if err := v.s.DB.InTx(v.ctx(), person.Tenant.ID, fn); err != nil {
			return err
		}
	}
	return nil
}

var addressForm = regexp.MustCompile(`https?://[^\s<>"]+`)

// linksIn finds the addresses of ours in a mail, as paths, so that they open under the
// name by which this browser knows the computer. Others stay text, as in a real mail.
func (s *Server) linksIn(text string) []string {
	var links []string
	for _, address := range addressForm.FindAllString(text, -1) {
		path, ours := strings.CutPrefix(strings.TrimRight(address, ".,;:!?)"), s.origin)
		if ours && strings.HasPrefix(path, "/") && !slices.Contains(links, path) {
			links = append(links, path)
		}
	}
	return links
}

// stateWords is how far a mail is.
func stateWords(m mail.Mail) string {
	switch m.State {
	case mail.StateSent:
		return "Kept here"
	case mail.StateSending:
		return "On its way"
	case mail.StateFailed:
		return "Given up: " + m.LastError
	}
	if m.LastError != "" {
		return "Not sent yet: " + m.LastError
	}
	return "Waits to be sent"
}

func addressOf(a mail.Address) string {
	if a.Name == "" {
		return a.Email
	}
	return a.Name + " <" + a.Email + ">"
}

// addressCell puts the address beneath the name, so that neither breaks in the middle.
func addressCell(a mail.Address) ui.Cell {
	if a.Name == "" {
		return ui.Cell{Text: a.Email}
	}
	return ui.Cell{Text: a.Name, Small: a.Email}
}

func addressesOf(list []mail.Address) string {
	var out []string
	for _, a := range list {
		out = append(out, addressOf(a))
	}
	return strings.Join(out, ", ")
}

func (m mailboxView) table() ui.Table {
	table := ui.Table{
		ID: "mails", Caption: ui.Plural(int64(len(m.Mails)), "mail", "mails") + ", the newest first",
		Columns: []ui.Column{{Title: "Subject"}, {Title: "To"}, {Title: "When"}, {Title: "State"}},
	}
	for _, one := range m.Mails {
		table.Rows = append(table.Rows, ui.TableRow{Cells: []ui.Cell{
			{Text: one.Subject, Href: "/mail/" + one.ID.String()},
			addressCell(one.To),
			{Text: ui.Ago(one.CreatedAt, m.Now)},
			{Text: stateWords(one)},
		}})
	}
	return table
}
