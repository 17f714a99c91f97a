package web

import (
	"strings"

	"github.com/a-h/templ"

	"tollgate/app/pipeline"
	"tollgate/web/ui"
)

var methodOptions = []ui.Option{
	{Value: "GET", Label: "Get (GET)"}, {Value: "POST", Label: "Send (POST)"}, {Value: "PUT", Label: "Replace (PUT)"},
	{Value: "PATCH", Label: "Change (PATCH)"}, {Value: "DELETE", Label: "Delete (DELETE)"}, {Value: "HEAD", Label: "Look only (HEAD)"},
}

func (f *stepForm) http(with *pipeline.HTTP) {
	choose(f, ui.Field{Name: "with.method", Label: "What to do", Compact: true, None: "-", Options: methodOptions}, &with.Method)
	f.text(ui.Field{Name: "with.url", Label: "Address", Placeholder: "https://api.example.com/orders"}, &with.URL)
	if with.Sends() || with.Body != "" {
		f.formula(ui.Field{Name: "with.body", Label: "Data to send", Help: "A value, or a record written out.", Optional: true}, &with.Body, pipeline.ListRoot, nil)
		choose(f, ui.Field{Name: "with.send", Label: "Sent as", Compact: true, None: "JSON", Options: []ui.Option{
			{Value: string(pipeline.SendForm), Label: "A form"}, {Value: string(pipeline.SendText), Label: "Text"}, {Value: string(pipeline.SendFile), Label: "A file"},
		}}, &with.Send)
	}
	f.auth(with)
	f.query(with)
	f.headers(with)
	choose(f, ui.Field{Name: "with.answer", Label: "The answer is", Compact: true, None: "JSON", Options: []ui.Option{
		{Value: string(pipeline.AnswerText), Label: "Text"}, {Value: string(pipeline.AnswerFile), Label: "A file"},
	}}, &with.Answer)
	f.unsure(with)
	f.fold("http-more", "Statuses, size, earlier answers", "", false, func() { f.httpMore(with) })
}

func (f *stepForm) query(with *pipeline.HTTP) {
	rows(f, rowList[pipeline.Param]{
		Name: "with.query", Label: "Added to the address", Columns: []string{"Name", "Value"}, Shape: "pairs", Add: "Add an entry",
		Blank: func() pipeline.Param { return pipeline.Param{} }, Keep: func(p pipeline.Param) bool { return p != pipeline.Param{} },
		Draw: func(f *stepForm, at string, row *pipeline.Param) ([]templ.Component, templ.Component) {
			return []templ.Component{
				f.cell(func() { f.words(ui.Field{Name: at + ".name", Label: "Name"}, &row.Name) }),
				f.cell(func() { f.text(ui.Field{Name: at + ".value", Label: "Value"}, &row.Value) }),
			}, nil
		},
	}, &with.Query)
}

func (f *stepForm) headers(with *pipeline.HTTP) {
	rows(f, rowList[pipeline.Header]{
		Name: "with.headers", Label: "Headers", Columns: []string{"Name", "Value", "or a secret"}, Shape: "fields", Add: "Add a header",
		Blank: func() pipeline.Header { return pipeline.Header{} }, Keep: func(h pipeline.Header) bool { return h != pipeline.Header{} },
		Draw: func(f *stepForm, at string, row *pipeline.Header) ([]templ.Component, templ.Component) {
			return []templ.Component{
				f.cell(func() { f.words(ui.Field{Name: at + ".name", Label: "Name"}, &row.Name) }),
				f.cell(func() { f.text(ui.Field{Name: at + ".value", Label: "Value", Optional: true}, &row.Value) }),
				f.cell(func() { f.secret(ui.Field{Name: at + ".secret", Label: "Secret", Optional: true}, &row.Secret) }),
			}, nil
		},
	}, &with.Headers)
}

// secret is one of the workspace's secrets by name.
func (f *stepForm) secret(field ui.Field, to *string) {
	field.Compact, field.None = true, "No secret"
	for _, name := range f.d.Secrets {
		field.Options = append(field.Options, ui.Option{Value: name, Label: name})
	}
	choose(f, field, to)
}

func (f *stepForm) auth(with *pipeline.HTTP) {
	auth := pipeline.Auth{}
	if with.Auth != nil {
		auth = *with.Auth
	}
	choose(f, ui.Field{Name: "with.auth.kind", Label: "Signing in", Compact: true, None: "Not needed", Options: []ui.Option{
		{Value: string(pipeline.AuthBearer), Label: "With a token"}, {Value: string(pipeline.AuthBasic), Label: "With a user name and password"},
		{Value: string(pipeline.AuthAPIKey), Label: "With an API key"}, {Value: string(pipeline.AuthOAuth2), Label: "With OAuth 2, as a client"},
	}}, &auth.Kind)
	if auth.Kind != "" || with.Auth != nil {
		f.secret(ui.Field{Name: "with.auth.secret", Label: "Secret", Help: "Owners and admins enter secrets under “Secrets”."}, &auth.Secret)
		f.words(ui.Field{Name: "with.auth.user", Label: "User name or client id", Optional: true}, &auth.User)
	}
	if auth.Kind == pipeline.AuthAPIKey {
		f.words(ui.Field{Name: "with.auth.header", Label: "Header of the key", Optional: true, Placeholder: "X-API-Key"}, &auth.Header)
		f.words(ui.Field{Name: "with.auth.query", Label: "or entry of the address", Optional: true}, &auth.Query)
	}
	if auth.Kind == pipeline.AuthOAuth2 {
		f.words(ui.Field{Name: "with.auth.token_url", Label: "Where tokens are given"}, &auth.TokenURL)
		f.words(ui.Field{Name: "with.auth.scope", Label: "Scope", Optional: true}, &auth.Scope)
	}
	if f.sent != nil {
		with.Auth = nil
		if auth.Kind != "" {
			with.Auth = &auth
		}
	}
}

// unsure is what is done where nobody can tell whether a call arrived.
func (f *stepForm) unsure(with *pipeline.HTTP) {
	usual := "Ask a person"
	if !with.Sends() {
		usual = "Do it again"
	}
	choose(f, ui.Field{Name: "with.if_unsure", Label: "If we cannot tell whether it arrived", Compact: true, None: usual, Options: []ui.Option{
		{Value: string(pipeline.UnsureAsk), Label: "Ask a person"}, {Value: string(pipeline.UnsureRepeat), Label: "Do it again, under the same key"},
		{Value: string(pipeline.UnsureLookUp), Label: "Look it up"}, {Value: string(pipeline.UnsureFail), Label: "Fail the step"},
	}}, &with.IfUnsure)
	if with.IfUnsure == pipeline.UnsureLookUp || with.LookUp != nil {
		f.lookUp(with)
	}
	if with.Unsure() == pipeline.UnsureAsk || len(with.Ask) > 0 {
		f.people("with.ask", "Who is asked then?", "Nobody named: the owners and admins.", &with.Ask)
	}
}

func (f *stepForm) lookUp(with *pipeline.HTTP) {
	look := pipeline.LookUp{}
	if with.LookUp != nil {
		look = *with.LookUp
	}
	f.text(ui.Field{Name: "with.look_up.url", Label: "Where to look it up"}, &look.URL)
	f.words(ui.Field{Name: "with.look_up.arrived", Label: "It arrived if", Help: "A formula over “answer”, such as answer.status == 200."}, &look.Arrived)
	f.words(ui.Field{Name: "with.look_up.value", Label: "What to go on with", Help: "A formula over “answer”. Empty: its body.", Optional: true}, &look.Value)
	if f.sent != nil {
		with.LookUp = nil
		if with.IfUnsure == pipeline.UnsureLookUp {
			with.LookUp = &look
		}
	}
}

func (f *stepForm) httpMore(with *pipeline.HTTP) {
	success := strings.Join(with.Success, ", ")
	f.words(ui.Field{Name: "with.success", Label: "Good statuses", Placeholder: "2xx", Optional: true}, &success)
	if f.sent != nil && f.sent.Has("with.success") {
		with.Success = nil
		for one := range strings.SplitSeq(success, ",") {
			if one = strings.TrimSpace(one); one != "" {
				with.Success = append(with.Success, one)
			}
		}
	}
	f.words(ui.Field{Name: "with.idempotency_header", Label: "Header of the idempotency key", Placeholder: "Idempotency-Key", Optional: true}, &with.IdempotencyHeader)
	most := int(with.MaxBytes)
	f.whole(ui.Field{Name: "with.max_bytes", Label: "Largest answer, in bytes", Optional: true}, &most)
	with.MaxBytes = int64(most)
	f.tick(ui.Field{Name: "with.reuse", Label: "Take an identical earlier answer (of calls that only get)"}, &with.Reuse)
	f.span(ui.Field{Name: "with.reuse_for", Label: "Not older than", Optional: true, Placeholder: "7d"}, &with.ReuseFor)
}
