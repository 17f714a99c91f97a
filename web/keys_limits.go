package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"tollgate/tenants"
	"tollgate/web/ui"
)

// limitsForm are the limits of a key as a person writes them: of each model by itself, and
// of those that have none of their own.
type limitsForm struct {
	Lines        []limitLine
	Field, Fault string
}

// limitLine are the limits of one model; empty texts are none.
type limitLine struct {
	Model, Name      string // Model as in tenants.RateLimits
	Requests, Tokens string
}

func limitsFormOf(models []Model, limits tenants.RateLimits) limitsForm {
	form := limitsForm{Lines: []limitLine{{Model: tenants.AnyModel, Name: "Each model"}}}
	if len(models) > 1 {
		form.Lines[0].Name = "Each other model"
		for _, model := range models {
			_, id, _ := strings.Cut(model.ID, "/")
			form.Lines = append(form.Lines, limitLine{Model: id, Name: model.Name})
		}
	}
	for i := range form.Lines {
		if limit, ok := limits[form.Lines[i].Model]; ok {
			form.Lines[i].Requests, form.Lines[i].Tokens = perMinute(limit.Requests), perMinute(limit.Tokens)
		}
	}
	return form
}

func perMinute(n int64) string {
	if n == 0 {
		return ""
	}
	return ui.Count(n)
}

// read takes what was sent. A model without any figure has the limits of each other one.
func (f *limitsForm) read(value func(string) string) (tenants.RateLimits, error) {
	limits := tenants.RateLimits{}
	for i := range f.Lines {
		line := &f.Lines[i]
		line.Requests, line.Tokens = value(line.requestsName()), value(line.tokensName())
		requests, err := perMinuteFrom(line.requestsName(), line.Requests)
		if err != nil {
			return nil, err
		}
		tokens, err := perMinuteFrom(line.tokensName(), line.Tokens)
		if err != nil {
			return nil, err
		}
		if limit := (tenants.RateLimit{Requests: requests, Tokens: tokens}); !limit.IsZero() {
			limits[line.Model] = limit
		}
	}
	return limits, nil
}

func perMinuteFrom(name, text string) (int64, error) {
	digits := strings.NewReplacer(",", "", " ", "", "\u00a0", "", "'", "").Replace(strings.TrimSpace(text))
	if digits == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > tenants.MaxRate {
		return 0, &tenants.Invalid{Field: name, Message: "Write a whole number up to " + ui.Count(tenants.MaxRate) + ", or leave it empty for no limit."}
	}
	return n, nil
}

func (l limitLine) requestsName() string { return "requests_" + l.Model }

func (l limitLine) tokensName() string { return "tokens_" + l.Model }

// fields are the two figures of a line. The others are called by their names too, for who
// does not see what stands above.
func (f limitsForm) fields(line limitLine) []ui.Field {
	fields := []ui.Field{
		{Kind: ui.TextField, Name: line.requestsName(), Label: line.Name + ": calls a minute", Value: line.Requests, Optional: true, MaxLength: 20, Autocomplete: "off"},
		{Kind: ui.TextField, Name: line.tokensName(), Label: line.Name + ": tokens a minute", Value: line.Tokens, Optional: true, MaxLength: 20, Autocomplete: "off"},
	}
	for i := range fields {
		if fields[i].Name == f.Field {
			fields[i].Error = f.Fault
		}
	}
	return fields
}

// all are the fields of all lines.
func (f limitsForm) all() []ui.Field {
	var fields []ui.Field
	for _, line := range f.Lines {
		fields = append(fields, f.fields(line)...)
	}
	return fields
}

func (s *Server) limitKey(v *visit) error {
	view := keyView{v: v}
	if err := view.load(); err != nil {
		return err
	}
	limits, err := view.Limits.read(v.FormValue)
	if err == nil {
		err = v.changeKey(func(ctx context.Context, tx tenants.Tx, id tenants.ProviderKeyID) error {
			return tenants.LimitProviderKey(ctx, tx, id, limits, v.me)
		})
	}
	form := keyForm{}
	if !form.takes(err) {
		return err
	}
	v.saved, view.Limits.Field, view.Limits.Fault = false, form.Field, form.Fault
	return view.show(http.StatusUnprocessableEntity)
}
