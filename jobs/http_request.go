package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tollgate/app/engine"
	"tollgate/app/outbound"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

const userAgent = "Tollgate"

// request builds the step's own request. Secrets come in last, behind everything that
// data had a part in.
func (c *httpCall) request(ctx context.Context) (*http.Request, *engine.Reply) {
	req, reply := c.plainRequest(ctx, c.input.Method, c.input.URL, c.body())
	if reply != nil {
		return nil, reply
	}
	if c.input.Type != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", c.input.Type)
	}
	if c.input.KeyHeader != "" {
		req.Header.Set(c.input.KeyHeader, c.call.Key)
	}
	for _, param := range c.input.Query {
		addQuery(req.URL, param.Name, param.Value)
	}
	return req, c.authorize(ctx, req)
}

// addQuery leaves what is in the query as it was written.
func addQuery(u *url.URL, name, value string) {
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += url.QueryEscape(name) + "=" + url.QueryEscape(value)
}

func (c *httpCall) body() io.Reader {
	switch {
	case c.file != nil:
		return bytes.NewReader(c.file)
	case c.input.Body != nil:
		return strings.NewReader(*c.input.Body)
	}
	return nil
}

// plainRequest is a request without secrets.
func (c *httpCall) plainRequest(ctx context.Context, method, address string, body io.Reader) (*http.Request, *engine.Reply) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil || climbs(req.URL) {
		return nil, refusal(classBadAddress, "The address is not one that can be called. Check how it is put together.")
	}
	req.Header.Set("User-Agent", userAgent)
	if c.input.Answer == pipeline.AnswerJSON {
		req.Header.Set("Accept", "application/json")
	}
	for _, header := range c.input.Headers {
		if strings.ContainsFunc(header.Value, breaksHeader) {
			return nil, refusal(classInvalidRequest, fmt.Sprintf("The value of the header “%s” has a line break or a control character in it, so nothing was sent.", header.Name))
		}
		req.Header.Set(header.Name, header.Value)
	}
	return req, nil
}

func breaksHeader(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// climbs tells of an address with parts that mean the folder above: a value inserted into
// the path could so choose another path than the step's author meant.
func climbs(u *url.URL) bool {
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// authorize puts the secrets in.
func (c *httpCall) authorize(ctx context.Context, req *http.Request) *engine.Reply {
	for _, header := range c.input.Secret {
		secret, reply := c.secretFor(header.Secret, req.URL)
		if reply != nil {
			return reply
		}
		req.Header.Set(header.Name, secret)
	}
	auth := c.input.Auth
	if auth == nil {
		return nil
	}
	if auth.Kind == pipeline.AuthOAuth2 {
		token, reply := c.token(ctx)
		if reply == nil {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		return reply
	}
	secret, reply := c.secretFor(auth.Secret, req.URL)
	if reply != nil {
		return reply
	}
	switch auth.Kind {
	case pipeline.AuthBasic:
		c.setBasic(req, auth.User, secret)
	case pipeline.AuthAPIKey:
		setAPIKey(req, *auth, secret)
	default:
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	return nil
}

// setBasic hides the form in which name and password travel, too.
func (c *httpCall) setBasic(req *http.Request, user, password string) {
	req.SetBasicAuth(user, password)
	_, encoded, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	c.masks.Hide(c.input.Auth.Secret, encoded)
	c.masks.Hide(c.input.Auth.Secret, user+":"+password)
}

func setAPIKey(req *http.Request, auth pipeline.Auth, secret string) {
	switch {
	case auth.Query != "":
		addQuery(req.URL, auth.Query, secret)
	case auth.Header != "":
		req.Header.Set(auth.Header, secret)
	default:
		req.Header.Set("X-API-Key", secret)
	}
}

// secretFor is a secret's value, if it may be sent to the address.
func (c *httpCall) secretFor(name string, to *url.URL) (string, *engine.Reply) {
	secret, ok := c.secrets[name]
	if !ok {
		return "", refusal(classNoSecret, fmt.Sprintf("The workspace has no secret “%s”, so nothing was sent.", name))
	}
	if !mayGo(secret, to) {
		return "", refusal(classNoSecret, fmt.Sprintf("The secret “%s” may not be sent to %s, so nothing was sent. An owner or admin says to which hosts it may go.", name, to.Hostname()))
	}
	return secret.Value, nil
}

func mayGo(secret tenants.OpenedSecret, to *url.URL) bool {
	return secret.MayGoTo(to.Hostname(), outbound.Authority(to))
}
