package pipeline

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// unseen are elements whose text no reader sees.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Head: true, atom.Title: true, atom.Template: true,
	atom.Noscript: true, atom.Iframe: true, atom.Object: true, atom.Svg: true, atom.Textarea: true,
}

// lineBreaks are elements that begin a new line.
var lineBreaks = map[atom.Atom]bool{
	atom.Br: true, atom.P: true, atom.Div: true, atom.Tr: true, atom.Li: true, atom.Ul: true, atom.Ol: true,
	atom.Table: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true,
	atom.Blockquote: true, atom.Pre: true, atom.Hr: true, atom.Section: true, atom.Article: true,
}

// textOfHTML keeps what a reader sees of a page: its text, a line per block. It
// reads tokens one by one, so nesting costs nothing.
func textOfHTML(page string) string {
	z := html.NewTokenizer(strings.NewReader(page))
	var out strings.Builder
	hidden := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return tidy(out.String())
		case html.TextToken:
			if hidden == 0 {
				out.Write(z.Text())
			}
		case html.StartTagToken:
			a := tagOf(z)
			if unseen[a] {
				hidden++
			}
			if lineBreaks[a] {
				out.WriteByte('\n')
			}
		case html.EndTagToken:
			a := tagOf(z)
			if unseen[a] && hidden > 0 {
				hidden--
			}
			if lineBreaks[a] && a != atom.Br {
				out.WriteByte('\n')
			}
		case html.SelfClosingTagToken:
			if lineBreaks[tagOf(z)] {
				out.WriteByte('\n')
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func tagOf(z *html.Tokenizer) atom.Atom {
	name, _ := z.TagName()
	return atom.Lookup(name)
}

// tidy joins runs of spaces and keeps at most one empty line in a row.
func tidy(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.Join(strings.Fields(strings.ReplaceAll(line, "\u00a0", " ")), " ")
		if line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
