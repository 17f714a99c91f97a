package pipeline

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"tollgate/tenants"
)

var (
	headerPattern  = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)
	successPattern = regexp.MustCompile(`^[1-5]([0-9]{2}|xx)$`)
)

// Whether an address may be called at all is judged when it is called, by what its
// name means then.
func (c *checker) http(n *Node, w *HTTP) {
	c.oneOf(n, "with.method", w.Method, "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
	c.oneOf(n, "with.send", string(w.Send), "", string(SendJSON), string(SendForm), string(SendText), string(SendFile))
	c.oneOf(n, "with.answer", string(w.Answer), "", string(AnswerJSON), string(AnswerText), string(AnswerFile))
	c.httpAddress(n, "with.url", w.URL, "it has no address. Enter the one to call.", w)
	if w.Body != "" && !w.Sends() {
		c.blocks(n, "with.body", "“%s” sends no data. Remove the data, put it into the query, or choose POST.", shown(w.Method))
	}
	if w.MaxBytes < 0 || w.MaxBytes > MaxHTTPAnswer {
		c.blocks(n, "with.max_bytes", "an answer may have from 1 to %d bytes.", MaxHTTPAnswer)
	}
	for i, status := range w.Success {
		if !successPattern.MatchString(status) {
			c.blocks(n, fmt.Sprintf("with.success[%d]", i), "“%s” is no status of an answer. Write it like 201, or like 2xx for all that begin with 2.", shown(status))
		}
	}
	c.reuse(n, w.Reuse, w.ReuseFor)
	if w.Reuse && w.Sends() {
		c.blocks(n, "with.reuse", "“%s” sends data, so it has to be called each time. Remove the reuse of earlier answers.", shown(w.Method))
	}
	if w.Reuse && w.Answer == AnswerFile {
		c.blocks(n, "with.reuse", "an answer that is a file cannot be taken again. Read it as text or data, or remove the reuse of earlier answers.")
	}
	c.httpHeaders(n, w)
	c.auth(n, w.Auth)
	c.unsure(n, w)
}

// headers that are ours to set, or that say how the bytes travel.
var ownHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "proxy-authorization", "accept-encoding"}

func (c *checker) httpHeaders(n *Node, w *HTTP) {
	for i, q := range w.Query {
		if strings.TrimSpace(q.Name) == "" || strings.ContainsFunc(q.Name, breaksLine) {
			c.blocks(n, fmt.Sprintf("with.query[%d].name", i), "an entry of the query has no plain name. Enter one.")
		}
	}
	for i, h := range w.Headers {
		path := fmt.Sprintf("with.headers[%d]", i)
		switch {
		case !headerPattern.MatchString(h.Name) || (h.Value == "") == (h.Secret == ""):
			c.blocks(n, path, "header “%s” needs a plain name and either a value or a secret.", shown(h.Name))
		case slices.Contains(ownHeaders, strings.ToLower(h.Name)):
			c.blocks(n, path, "header “%s” is set by the product itself. Remove it.", shown(h.Name))
		case h.Secret != "":
			c.secretName(n, path+".secret", h.Secret)
		case carriesSecret(h.Name):
			c.warn(n, path, "header “%s” usually carries a secret, and what is written here everybody can read. Store it as a secret and name that instead.", shown(h.Name))
		}
	}
	if w.IdempotencyHeader != "" && !headerPattern.MatchString(w.IdempotencyHeader) {
		c.blocks(n, "with.idempotency_header", "“%s” is not the name of a header.", shown(w.IdempotencyHeader))
	}
}

// carriesSecret tells headers in which keys travel.
func carriesSecret(name string) bool {
	name = strings.ToLower(name)
	return name == "authorization" || name == "cookie" || strings.Contains(name, "api-key") || strings.Contains(name, "token") || strings.Contains(name, "secret")
}

func (c *checker) secretName(n *Node, path, name string) {
	if !tenants.ValidSecretName(name) {
		c.blocks(n, path, "it names no secret. Choose one of those that the workspace has.")
	}
}

func (c *checker) auth(n *Node, a *Auth) {
	if a == nil {
		return
	}
	c.oneOf(n, "with.auth.kind", string(a.Kind), string(AuthBearer), string(AuthBasic), string(AuthAPIKey), string(AuthOAuth2))
	c.secretName(n, "with.auth.secret", a.Secret)
	if (a.Kind == AuthBasic || a.Kind == AuthOAuth2) && (strings.TrimSpace(a.User) == "" || strings.ContainsFunc(a.User, breaksLine)) {
		c.blocks(n, "with.auth.user", "it does not say whose secret that is. Enter the user name, or the client id.")
	}
	if a.Kind == AuthBasic && strings.Contains(a.User, ":") {
		c.blocks(n, "with.auth.user", "a user name with “:” cannot be sent. Enter another.")
	}
	if a.Header != "" && !headerPattern.MatchString(a.Header) {
		c.blocks(n, "with.auth.header", "“%s” is not the name of a header.", shown(a.Header))
	}
	if a.Header != "" && a.Query != "" {
		c.blocks(n, "with.auth", "the key can travel in a header or in the query, and not in both. Remove one of them.")
	}
	if u, err := url.Parse(a.TokenURL); a.Kind == AuthOAuth2 && (err != nil || u.Host == "") {
		c.blocks(n, "with.auth.token_url", "it does not say where tokens are given. Enter the whole address, beginning with https://.")
	}
}

// httpAddress checks an address. A secret goes only where the author says: data may not
// choose the host that is shown one.
func (c *checker) httpAddress(n *Node, path, address, missing string, w *HTTP) {
	address = strings.TrimSpace(address)
	switch {
	case address == "":
		c.blocks(n, path, "%s", missing)
		return
	case strings.ContainsFunc(literal(address), breaksLine):
		c.blocks(n, path, "the address has a line break or a hidden control character in it. Type it again in one line.")
		return
	}
	if hostInserted(address) && len(w.Secrets()) > 0 {
		c.blocks(n, path, "data chooses the host, and the call shows it a secret. Write the host itself, and insert only what comes behind it.")
	}
	if !strings.HasPrefix(address, "{{") && !strings.HasPrefix(strings.ToLower(address), "https://") && !strings.HasPrefix(strings.ToLower(address), "http://") {
		c.blocks(n, path, "“%s” is not a whole address. Write it like https://example.com/orders.", shown(address))
	}
}

// hostInserted tells whether something is inserted before the address's path begins.
func hostInserted(address string) bool {
	open := strings.Index(address, "{{")
	if open < 0 {
		return false
	}
	_, rest, found := strings.Cut(address[:open], "://")
	return !found || !strings.ContainsAny(rest, "/?#")
}

// unsure checks what happens when nobody can tell whether the call arrived.
func (c *checker) unsure(n *Node, w *HTTP) {
	c.oneOf(n, "with.if_unsure", string(w.IfUnsure), "", string(UnsureAsk), string(UnsureRepeat), string(UnsureLookUp), string(UnsureFail))
	switch {
	case w.Unsure() == UnsureLookUp && w.LookUp == nil:
		c.blocks(n, "with.look_up", "“look it up” needs the address that knows, and what it says when the call has arrived. Enter both.")
	case w.Unsure() != UnsureLookUp && w.LookUp != nil:
		c.warn(n, "with.look_up", "it says how to look it up, but does something else when it cannot tell. Choose “look it up”, or remove this.")
	case w.Unsure() == UnsureRepeat && w.Sends():
		c.add(Tip, n, "with.if_unsure", "when nobody can tell whether it arrived, it is sent again under the same key. Make sure that the other side knows such keys.")
	}
	if w.LookUp != nil {
		c.httpAddress(n, "with.look_up.url", w.LookUp.URL, "“look it up” needs the address that knows. Enter it.", w)
		if strings.TrimSpace(w.LookUp.Arrived) == "" {
			c.blocks(n, "with.look_up.arrived", "it does not say how to tell from the answer that the call arrived. Enter the condition.")
		}
		for _, s := range w.judged() {
			c.slot(n, s, onlyAnswer)
		}
	}
	switch {
	case w.Unsure() == UnsureAsk && len(w.Ask) > 0:
		c.asked(n, "with.ask", w.Ask)
	case len(w.Ask) > 0:
		c.warn(n, "with.ask", "it names people to ask, but does something else when it cannot tell. Choose “ask”, or remove them.")
	}
}
