// Package gallery shows the components of web/ui: each one in each state, and
// whole pages composed of them, with content that tries to break them: names
// of 300 characters, right-to-left names, emoji, markup.
//
// It is the reference for people who compose pages, and what the browser test
// looks at: both themes, two widths, under the product's content policy.
// Nothing here is reachable in the product.
//
// Reading order: everything.templ, then the pages, then gallery_test.go.
package gallery
