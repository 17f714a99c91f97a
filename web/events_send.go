package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/pipeline"
	"tollgate/app/trigger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// sendView is the form that sends an event by hand, empty or as it was sent.
type sendView struct {
	v     *visit
	Key   string // the form's own: sending it again is the same event
	Name  string
	For   string // the event's key
	Data  string
	Field string // what is wrong, if anything is
	Fault string
	Names []string // that runs wait for or that were sent
}

// sendPage draws the form. Its key stands in the address, so that the browser's back
// button returns to the same form.
func (s *Server) sendPage(v *visit) error {
	view := sendView{v: v, Key: v.QueryParam("form"), Name: v.QueryParam("name"), For: v.QueryParam("key")}
	if !trigger.FitsAsKey(view.Key) {
		return v.redirect(v.path("events", "send") + queryOf("form", newFormKey(), "name", view.Name, "key", view.For))
	}
	if err := v.inTx(func(ctx context.Context, tx tenants.Tx) error { return view.read(ctx, tx) }); err != nil {
		return err
	}
	return view.show(http.StatusOK, "Send an event")
}

func (f *sendView) read(ctx context.Context, tx tenants.Tx) error {
	var err error
	f.Names, err = engine.EventNames(ctx, tx)
	return err
}

func (f *sendView) show(status int, title string) error {
	frame := f.v.frame(title, inRuns)
	frame.Narrow = true
	return f.v.page(status, frame, sendBody(*f))
}

// sendEvent sends the event, or shows the form again with all that was typed.
func (s *Server) sendEvent(v *visit) error {
	view := sendView{
		v: v, Key: v.FormValue(formKeyName), Name: v.FormValue("name"), For: v.FormValue("key"),
		Data: strings.ReplaceAll(v.FormValue("data"), "\r\n", "\n"),
	}
	if !trigger.FitsAsKey(view.Key) {
		return trigger.ErrNoFormKey
	}
	var sent engine.Sent
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		sent, err = view.send(ctx, tx)
		return err
	})
	switch {
	case view.takes(err):
		return view.again()
	case err != nil:
		return err
	case sent.Before:
		return v.redirect(v.path("events", sent.Event.ID.String()) + "?sent=before")
	}
	return v.redirect(v.path("events", sent.Event.ID.String()) + "?sent=now")
}

// send records the event and who sent it.
func (f *sendView) send(ctx context.Context, tx tenants.Tx) (engine.Sent, error) {
	data := strings.TrimSpace(f.Data)
	if data == "" {
		data = "null"
	}
	sent, err := f.v.s.Engine.SendEvent(ctx, tx, engine.Event{
		Name: f.Name, Key: f.For, Data: []byte(data), Sender: f.v.me.User.Name,
		SenderID: "form:" + f.v.me.User.ID.String() + ":" + f.Key,
	})
	if err != nil || sent.Before {
		return sent, err
	}
	return sent, tenants.Audit(ctx, tx, tenants.Entry{
		Actor: tenants.ByMember(f.v.me), Action: "event.sent", Target: tenants.Target{Kind: "event", ID: sent.Event.ID},
	})
}

// takes keeps what is wrong with the form, if that is what the error tells.
func (f *sendView) takes(err error) bool {
	if bad, ok := errors.AsType[*engine.BadEvent](err); ok {
		f.Field, f.Fault = bad.Field, bad.Reason
		return true
	}
	if bad, ok := errors.AsType[*expr.BadJSON](err); ok {
		f.Field, f.Fault = "data", badJSONWords(strings.TrimSpace(f.Data), *bad)
		return true
	}
	if errors.Is(err, engine.ErrOtherEvent) { // she went back and changed what she had sent
		f.Key, f.Field = newFormKey(), "name"
		f.Fault = "This form has sent its event already, and what you changed since was not sent. Send it now to send another event."
		return true
	}
	return false
}

func (f *sendView) again() error {
	if err := f.v.inTx(func(ctx context.Context, tx tenants.Tx) error { return f.read(ctx, tx) }); err != nil {
		return err
	}
	f.v.saved = false
	return f.show(http.StatusUnprocessableEntity, "Error: 1 thing to fix")
}

// badJSONWords say in which line of the text reading it stopped, and why.
func badJSONWords(text string, bad expr.BadJSON) string {
	before := text[:min(bad.Offset, len(text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("Line %d, character %d is not JSON: %s.", line, column, strings.TrimSuffix(bad.Reason, "."))
}

// fields are the form's, with what was typed.
func (f sendView) fields() []ui.Field {
	fields := []ui.Field{
		{Kind: ui.TextField, Name: "name", Label: "Name", Value: f.Name, MaxLength: pipeline.MaxName, Help: f.namesHelp()},
		{Kind: ui.TextField, Name: "key", Label: "Key", Value: f.For, Optional: true, MaxLength: engine.MaxEventKey,
			Help: "Which one it is, such as an order’s number. It goes to the runs that wait for the same name and key."},
		{Kind: ui.LongField, Name: "data", Label: "Data", Value: f.Data, Optional: true, Rows: 8,
			Help: `What the runs get, as JSON, such as {"amount": 420.00}. At most 256 KB.`},
	}
	for i := range fields {
		if fields[i].Name == f.Field {
			fields[i].Error = f.Fault
		}
	}
	return fields
}

// namesHelp names events that exist, since one letter makes another event.
func (f sendView) namesHelp() string {
	const most = 5
	if len(f.Names) == 0 {
		return "The name that the step waits for, letter by letter."
	}
	return "The name that the step waits for, letter by letter, such as " + quotedList(f.Names[:min(len(f.Names), most)]) + "."
}

// quotedList is “a”, “b” or “c”.
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "“" + name + "”"
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
