package engine

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"tollgate/app/expr"
	"tollgate/app/pipeline"
)

// HTTPInput is a call to another system, as stored and shown on the run's page. Secrets
// are in it by their names only.
type HTTPInput struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Query   []HTTPParam       `json:"query,omitempty"`
	Headers []HTTPParam       `json:"headers,omitempty"`
	Secret  []pipeline.Header `json:"secret_headers,omitempty"`
	Auth    *pipeline.Auth    `json:"auth,omitempty"`

	Body *string  `json:"body,omitempty"` // nil: nothing is sent, or a file
	File *FileRef `json:"file,omitempty"`
	Type string   `json:"content_type,omitempty"`

	KeyHeader string            `json:"idempotency_header,omitempty"`
	Success   []string          `json:"success"`
	Answer    pipeline.AnswerAs `json:"answer"`
	MaxBytes  int64             `json:"max_bytes"`
	LookUp    *HTTPLookUp       `json:"look_up,omitempty"`
}

// HTTPParam is a named text of a call.
type HTTPParam struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HTTPLookUp is how a call finds out whether an earlier try arrived. Its formulas read
// "answer".
type HTTPLookUp struct {
	URL     string `json:"url"`
	Arrived string `json:"arrived"`
	Value   string `json:"value,omitempty"`
}

// maxURL bounds an address with everything inserted, in bytes.
const maxURL = 8000

func (d *decider) httpInput(call *pipeline.CompiledHTTP) (HTTPInput, error) {
	input := HTTPInput{
		Method: call.Method, Secret: call.SecretHeaders, Auth: call.Auth, KeyHeader: call.IdempotencyHeader,
		Success: call.Success, Answer: call.Answer, MaxBytes: call.MaxBytes,
	}
	var err error
	if input.URL, err = d.renderURL("the address", call.URL); err != nil {
		return input, err
	}
	if input.Query, err = d.params("the query", call.Query); err != nil {
		return input, err
	}
	if input.Headers, err = d.params("the header", call.Headers); err != nil {
		return input, err
	}
	if call.LookUp != nil && call.Unsure == pipeline.UnsureLookUp {
		input.LookUp = &HTTPLookUp{Arrived: call.LookUp.Arrived, Value: call.LookUp.Value}
		if input.LookUp.URL, err = d.renderURL("the address to look up", call.LookUp.URL); err != nil {
			return input, err
		}
	}
	if call.Body == nil {
		return input, nil
	}
	value, err := call.Body.Eval(context.Background(), d.vars)
	if err != nil {
		return input, fmt.Errorf("In the data to send: %w", err)
	}
	return input, input.give(call.Send, value)
}

func (d *decider) params(place string, list []pipeline.CompiledParam) ([]HTTPParam, error) {
	var out []HTTPParam
	for _, one := range list {
		value, err := d.render(place+" “"+one.Name+"”", one.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, HTTPParam{one.Name, value})
	}
	return out, nil
}

// renderURL fills an address in. What is inserted cannot end the place where it stands, so
// that a value never chooses another path than the author meant.
func (d *decider) renderURL(place string, text *expr.Text) (string, error) {
	out, err := text.RenderEncoded(context.Background(), d.vars, func(s string) string {
		return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	})
	if err != nil {
		return "", fmt.Errorf("In %s: %w", place, err)
	}
	out = strings.TrimSpace(out)
	if len(out) > maxURL {
		return "", fmt.Errorf("In %s: with everything inserted it is longer than %d bytes.", place, maxURL)
	}
	return out, nil
}

// give puts what is sent into the form that the step asks for.
func (in *HTTPInput) give(as pipeline.SendAs, value any) error {
	var text string
	switch as {
	case pipeline.SendFile:
		files, err := filesIn(value)
		if err != nil || len(files) != 1 {
			return fmt.Errorf("In the data to send: it is not one file. Pick a file.")
		}
		in.File, in.Type = &files[0], files[0].Type
		return nil
	case pipeline.SendText:
		words, err := expr.Words(value)
		if err != nil {
			return err
		}
		text, in.Type = words, "text/plain; charset=utf-8"
	case pipeline.SendForm:
		record, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("In the data to send: a form needs a record, with one value for each of its fields.")
		}
		form, err := formOf(record)
		if err != nil {
			return err
		}
		text, in.Type = form, "application/x-www-form-urlencoded"
	default:
		encoded, err := expr.EncodeJSON(value)
		if err != nil {
			return err
		}
		text, in.Type = string(encoded), "application/json"
	}
	in.Body = &text
	return nil
}

func formOf(record map[string]any) (string, error) {
	form := url.Values{}
	for name, value := range record {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			words, err := expr.Words(one)
			if err != nil {
				return "", err
			}
			form.Add(name, words)
		}
	}
	return form.Encode(), nil
}
