package web

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// page is an answer, read as a browser reads it.
type page struct {
	t       testing.TB
	browser *browser
	method  string
	path    string
	status  int
	header  http.Header
	body    string
	doc     *html.Node
}

func readPage(t testing.TB, b *browser, r *http.Request, answer *http.Response) *page {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	p := &page{t: t, browser: b, method: r.Method, path: r.URL.RequestURI(), status: answer.StatusCode, header: answer.Header, body: string(body)}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		p.doc, err = html.Parse(strings.NewReader(p.body))
		require.NoError(t, err)
	}
	return p
}

// is requires a status.
func (p *page) is(status int) *page {
	p.t.Helper()
	require.Equal(p.t, status, p.status, "%s %s\n%s\n%s", p.method, p.path, p.header.Get("Location"), p.text())
	return p
}

// leadsTo requires a redirect and returns its address.
func (p *page) leadsTo(path string) *page {
	p.t.Helper()
	p.is(http.StatusSeeOther)
	require.Equal(p.t, path, p.header.Get("Location"))
	return p
}

// follow loads the page that a redirect leads to.
func (p *page) follow() *page {
	p.t.Helper()
	p.is(http.StatusSeeOther)
	path, _, _ := strings.Cut(p.header.Get("Location"), "#")
	return p.browser.get(path)
}

// says requires words on the page, as a reader sees them.
func (p *page) says(words ...string) *page {
	p.t.Helper()
	text := p.text()
	for _, want := range words {
		require.Contains(p.t, text, want)
	}
	return p
}

// hides requires that words are nowhere in the answer, not even in its markup.
func (p *page) hides(words ...string) *page {
	p.t.Helper()
	for _, secret := range words {
		require.NotContains(p.t, p.body, secret)
	}
	return p
}

// text is what a reader sees, with every white space as one blank.
func (p *page) text() string {
	if p.doc == nil {
		return p.body
	}
	var b strings.Builder
	for node := range p.doc.Descendants() {
		if node.Type == html.TextNode {
			b.WriteString(node.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// all gives the elements with a tag and, if not "", an attribute of a value.
func (p *page) all(tag, attribute, value string) []*html.Node {
	var found []*html.Node
	if p.doc == nil {
		return nil
	}
	for node := range p.doc.Descendants() {
		if node.Type == html.ElementNode && (tag == "" || node.Data == tag) && (attribute == "" || attr(node, attribute) == value) {
			found = append(found, node)
		}
	}
	return found
}

// byTestID gives the element that is marked for tests.
func (p *page) byTestID(id string) *html.Node {
	p.t.Helper()
	found := p.all("", "data-testid", id)
	require.Len(p.t, found, 1, "elements marked %q on\n%s", id, p.text())
	return found[0]
}

// field gives the value of the form field with a name.
func (p *page) field(name string) string {
	p.t.Helper()
	found := p.all("", "name", name)
	require.NotEmpty(p.t, found, "field %q on\n%s", name, p.text())
	return attr(found[0], "value")
}

// title is the title of the document.
func (p *page) title() string {
	for _, node := range p.all("title", "", "") {
		return textOf(node)
	}
	return ""
}

// heading is the h1.
func (p *page) heading() string {
	p.t.Helper()
	found := p.all("h1", "", "")
	require.Len(p.t, found, 1, "one h1")
	return textOf(found[0])
}

func attr(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(node *html.Node) string {
	var b strings.Builder
	for inner := range node.Descendants() {
		if inner.Type == html.TextNode {
			b.WriteString(inner.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
