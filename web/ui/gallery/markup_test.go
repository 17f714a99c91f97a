package gallery

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// nodes renders a page and gives its elements in order.
func nodes(t *testing.T, name string) []*html.Node {
	t.Helper()
	var page bytes.Buffer
	require.NoError(t, pages[name].Render(context.Background(), &page))
	root, err := html.Parse(&page)
	require.NoError(t, err)
	var out []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			out = append(out, n)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TestMarkupFitsThePolicy: what a strict content policy would block, and what
// hostile content would bring in, is not there in the first place.
func TestMarkupFitsThePolicy(t *testing.T) {
	t.Parallel()
	for name := range pages {
		for _, n := range nodes(t, name) {
			require.NotEqual(t, "style", n.Data, name)
			for _, a := range n.Attr {
				require.NotEqual(t, "style", a.Key, "%s: <%s>", name, n.Data)
				require.False(t, strings.HasPrefix(a.Key, "on"), "%s: <%s %s>", name, n.Data, a.Key)
				require.NotContains(t, strings.ToLower(a.Val), "javascript:", "%s: <%s %s>", name, n.Data, a.Key)
			}
			if n.Data == "script" {
				require.True(t, strings.HasPrefix(attr(n, "src"), "/static/"), "%s: a script that is not ours", name)
				require.Nil(t, n.FirstChild, "%s: an inline script", name)
			}
		}
	}
}

// TestReferencesHold: ids are unique, and every label, description and link
// within the page points to something that is there.
func TestReferencesHold(t *testing.T) {
	t.Parallel()
	for name := range pages {
		all := nodes(t, name)
		ids := map[string]bool{}
		for _, n := range all {
			if id := attr(n, "id"); id != "" {
				require.False(t, ids[id], "%s: id %q stands twice", name, id)
				ids[id] = true
			}
		}
		for _, n := range all {
			for _, key := range []string{"for", "aria-labelledby", "aria-describedby", "data-copy-from"} {
				for id := range strings.FieldsSeq(attr(n, key)) {
					require.True(t, ids[id], "%s: <%s %s=%q> points to nothing", name, n.Data, key, id)
				}
			}
			if id, ok := strings.CutPrefix(attr(n, "href"), "#f-"); ok && n.Data == "a" {
				require.True(t, ids["f-"+id], "%s: a fault links to %q, which is not there", name, id)
			}
		}
	}
}

// TestOnePrimaryButton: a page has at most one thing to do first.
func TestOnePrimaryButton(t *testing.T) {
	t.Parallel()
	for name := range pages {
		if name == "everything" {
			continue
		}
		count := 0
		for _, n := range nodes(t, name) {
			if strings.Contains(" "+attr(n, "class")+" ", " primary ") {
				count++
			}
		}
		require.LessOrEqual(t, count, 1, name)
	}
}

// TestReviewWithoutScript: the page behind a mail link loads no script.
func TestReviewWithoutScript(t *testing.T) {
	t.Parallel()
	for _, n := range nodes(t, "review") {
		require.NotEqual(t, "script", n.Data)
	}
}
