package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/expr"
	"tollgate/app/outbound"
	"tollgate/app/pipeline"
)

// judge reads an answer: a success becomes the step's output.
func (c *httpCall) judge(got answer) engine.Reply {
	if !c.succeeds(got.status) {
		return c.refused(got)
	}
	if got.broken != nil {
		return c.brokenOff(got)
	}
	body, files, err := c.read(got)
	if err != nil {
		return *refusal(classBadAnswer, fmt.Sprintf("%s answered %s, but the answer is not what the step takes: %s. The call itself arrived. Change how the answer is read, or tell whoever runs the other system.",
			got.host, statusWords(got.status), c.masks.Text(err.Error())))
	}
	output, err := c.output(got, body)
	if err != nil {
		return *refusal(engine.ClassTooLarge, "The answer is larger than a step may hand on. The call itself arrived. Ask for less.")
	}
	return engine.Reply{Output: output, Files: files}
}

// succeeds tells whether a status counts as success.
func (c *httpCall) succeeds(status int) bool {
	for _, wanted := range c.input.Success {
		if wanted == strconv.Itoa(status) || strings.HasSuffix(wanted, "xx") && wanted[:1] == strconv.Itoa(status/100) {
			return true
		}
	}
	return false
}

// brokenOff is an answer of success of which a part is missing.
func (c *httpCall) brokenOff(got answer) engine.Reply {
	var fault *outbound.Error
	if errors.Is(got.broken, errTooMuch) || errors.As(got.broken, &fault) && fault.Kind == outbound.KindTooLarge {
		return *refusal(engine.ClassTooLarge, fmt.Sprintf("%s answered with more than %s, the most that this step takes. The call itself arrived. Ask for less, or raise the step's limit.",
			got.host, megabytes(c.input.MaxBytes)))
	}
	return c.noAnswer(got.broken)
}

func megabytes(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}

// output is what formulas read.
func (c *httpCall) output(got answer, body any) ([]byte, error) {
	return expr.EncodeJSONLimit(map[string]any{
		"status": whole(int64(got.status)), "headers": c.headers(got.header), "body": body,
	}, engine.MaxValue)
}

// whole is a number as values hold it.
func whole(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// headers are those of an answer, by names in small letters. What only keeps a browser
// signed in is left out.
func (c *httpCall) headers(header http.Header) map[string]any {
	out := map[string]any{}
	for name, values := range header {
		if name != "Set-Cookie" {
			out[strings.ToLower(name)] = c.masks.Text(expr.Plain(strings.Join(values, ", ")))
		}
	}
	return out
}

// read gives the body as the step wants it, without secrets, and the files it names.
func (c *httpCall) read(got answer) (any, []engine.Content, error) {
	switch c.input.Answer {
	case pipeline.AnswerText:
		return c.masks.Text(expr.Plain(strings.ToValidUTF8(string(got.body), "\uFFFD"))), nil, nil
	case pipeline.AnswerFile:
		return c.readFile(got)
	}
	if len(strings.TrimSpace(string(got.body))) == 0 {
		return nil, nil, nil
	}
	value, err := expr.DecodeJSONLimit(got.body, pipeline.MaxHTTPAnswer)
	if err != nil {
		return nil, nil, fmt.Errorf("it is not JSON that can be read (%w)", err)
	}
	return c.masks.Value(value), nil, nil
}

// readFile gives the record of a file and its bytes. One of a kind that the start form
// knows is taken apart as there.
func (c *httpCall) readFile(got answer) (any, []engine.Content, error) {
	body := c.masks.Bytes(got.body)
	if len(body) == 0 {
		return nil, nil, errors.New("it is empty, where a file is wanted")
	}
	name, mediaType := c.fileName(got), mediaTypeOf(got.header)
	record, err := pipeline.ReadFile(name, body)
	if err != nil {
		text := ""
		if strings.HasPrefix(mediaType, "text/") {
			text = expr.Plain(strings.ToValidUTF8(string(body), "\uFFFD"))
		}
		record = map[string]any{
			"name": name, "type": mediaType, "size": whole(int64(len(body))), "digest": engine.DigestOf(body).String(), "text": text,
		}
	}
	return record, []engine.Content{{MediaType: mediaType, Bytes: body}}, nil
}

// fileName is the one that the answer gives, or the last part of the address.
func (c *httpCall) fileName(got answer) string {
	_, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
	name := ""
	if err == nil {
		name = params["filename"]
	}
	name = strings.TrimSpace(path.Base("/" + strings.ReplaceAll(expr.Plain(name), `\`, "/")))
	if name == "/" || name == "." {
		name = path.Base("/" + got.url)
	}
	if name == "/" || name == "." {
		name = "answer"
	}
	return expr.Preview([]byte(c.masks.Text(name)), 200)
}

func mediaTypeOf(header http.Header) string {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || len(mediaType) > 100 {
		return "application/octet-stream"
	}
	return mediaType
}
