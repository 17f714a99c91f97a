package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"tollgate/app/mail"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// What the session remembers between asking for a code and typing it.
const (
	sessionEmail = "email"
	sessionNext  = "next"
)

// signInView is the page where one asks for a code, and in local mode goes on as one of
// the demo people.
type signInView struct {
	Email  ui.Field
	Next   string
	People []tenants.Membership // in local mode
	You    tenants.UserID       // who is signed in already
}

// codeView is the page where one types the code.
type codeView struct {
	Email   string
	Code    ui.Field
	Mailbox bool // the mail is in the mailbox of local mode
}

func emailField(typed, fault string) ui.Field {
	return ui.Field{
		Kind: ui.EmailField, Name: "email", Label: "E-mail address", Autocomplete: "email", MaxLength: 254,
		Value: typed, Error: fault,
	}
}

func codeField(typed, fault string) ui.Field {
	return ui.Field{
		Kind: ui.CodeField, Name: "code", Label: "Code", Help: "Six digits. Spaces do not matter.", MaxLength: 32, Focus: fault == "",
		Value: typed, Error: fault,
	}
}

func (s *Server) signInPage(v *visit) error {
	return v.signInForm(http.StatusOK, emailField("", ""), safeNext(v.QueryParam("next")))
}

func (v *visit) signInForm(status int, email ui.Field, next string) error {
	view := signInView{Email: email, Next: next, You: v.user}
	if v.isLocal() {
		var err error
		if view.People, err = v.demoPeople(); err != nil {
			return err
		}
	}
	view.Email.Focus = email.Error == "" && len(view.People) == 0
	return v.page(status, v.alone(titleOf("Sign in", view.Email)), signInBody(view))
}

// titleOf says in the title that a form needs fixing, which is what a screen reader
// reads first.
func titleOf(title string, fields ...ui.Field) string {
	if len(ui.Faults(fields...)) > 0 {
		return "Error: " + title
	}
	return title
}

// askCode sends a code. Whether somebody is known under the address makes no
// difference, neither here nor in the answer.
func (s *Server) askCode(v *visit) error {
	email, next := v.FormValue("email"), safeNext(v.FormValue("next"))
	var code tenants.LoginCode
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		if code, err = tenants.RequestCode(ctx, stx, email, v.clientAddr()); err != nil {
			return err
		}
		_, err = s.Outbox.QueueSystem(ctx, stx, mail.Message{
			To: mail.Address{Email: code.Email}, Body: mail.LoginCode{ID: code.ID, Expires: code.Expires},
		})
		return err
	})
	if invalid, ok := errors.AsType[*tenants.Invalid](err); ok {
		return v.signInForm(http.StatusUnprocessableEntity, emailField(email, invalid.Message), next)
	}
	if err != nil {
		return err
	}
	s.sessions.Put(v.ctx(), sessionEmail, code.Email)
	s.sessions.Put(v.ctx(), sessionNext, next)
	if v.user.IsZero() {
		s.sessions.SetDeadline(v.ctx(), s.clock().Add(2*tenants.CodeLifetime)) // nobody's session need not stay
	}
	if err := v.saveSession(); err != nil {
		return err
	}
	return v.redirect("/signin/code")
}

func (s *Server) codePage(v *visit) error { return v.codeForm(http.StatusOK, codeField("", "")) }

func (v *visit) codeForm(status int, code ui.Field) error {
	email := v.s.sessions.GetString(v.ctx(), sessionEmail)
	if email == "" {
		return v.redirect("/signin")
	}
	view := codeView{Email: email, Code: code, Mailbox: v.isLocal()}
	return v.page(status, v.alone(titleOf("Type the code", code)), codeBody(view))
}

// takeCode tries the typed code. A wrong one leaves everything as it is, but counts.
func (s *Server) takeCode(v *visit) error {
	typed := v.FormValue("code")
	email, next := s.sessions.GetString(v.ctx(), sessionEmail), s.sessions.GetString(v.ctx(), sessionNext)
	if email == "" {
		return v.redirect("/signin")
	}
	var in tenants.SignIn
	err := v.inSystemTx(func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		in, err = tenants.VerifyCode(ctx, stx, s.Secret, email, typed)
		return err
	})
	if err != nil {
		return err
	}
	if errors.Is(in.Refused, tenants.ErrBadCode) {
		return v.codeForm(http.StatusUnprocessableEntity, codeField(typed, badCode(typed)))
	}
	if in.Refused != nil {
		return in.Refused
	}
	if err := v.signIn(in.User.ID); err != nil {
		return err
	}
	if next == "" {
		next = "/"
	}
	return v.redirect(next)
}

// badCode tells a slip of the fingers apart from a code that is no good.
func badCode(typed string) string {
	digits := 0
	for _, r := range typed {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	if digits != 6 {
		return "A code has six digits. Copy it from the newest mail."
	}
	return "This code is wrong or no longer valid. Copy it from the newest mail, or ask for a new one."
}

func (s *Server) leave(v *visit) error {
	if err := v.signOut(); err != nil {
		return err
	}
	return v.redirect("/signin")
}

// nextOf is the page to go on to as a demo person: the one she came from if it is in
// her workspace or the mailbox, else her home.
func nextOf(person tenants.Membership, next string) string {
	home := pathIn(person.Tenant.ID)
	path, _, _ := strings.Cut(next, "?")
	if path == home || strings.HasPrefix(path, home+"/") || path == "/mail" || strings.HasPrefix(path, "/mail/") {
		return next
	}
	return home
}

// demoPeople are those one can go on as in local mode.
func (v *visit) demoPeople() ([]tenants.Membership, error) {
	var people []tenants.Membership
	err := v.s.DB.InSystemTx(v.ctx(), func(ctx context.Context, stx tenants.SystemTx) error {
		var err error
		people, err = tenants.DemoPeople(ctx, stx)
		return err
	})
	return people, err
}

// continueAs signs in as one of the demo people, and as nobody else.
func (s *Server) continueAs(v *visit) error {
	wanted, err := tenants.ParseID[tenants.User](v.FormValue("user"))
	if err != nil {
		return errNotFound
	}
	people, err := v.demoPeople()
	if err != nil {
		return err
	}
	for _, person := range people {
		if person.User.ID != wanted {
			continue
		}
		if err := v.signIn(wanted); err != nil {
			return err
		}
		return v.redirect(nextOf(person, safeNext(v.FormValue("next"))))
	}
	return errNotFound
}
