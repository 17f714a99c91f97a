package web

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"slices"
	"strings"
	"unicode"

	"tollgate/web/ui"
)

// piece is a part of a changed text: kept, taken out, or put in.
type piece struct {
	Text    string
	Removed bool
	Added   bool
}

// maxCompared bounds the work of comparing two texts: words of one times words of the
// other. Longer ones are shown as a whole, old and new.
const maxCompared = 1_000_000

// wordChanges compares two texts word by word. Put together again, what is not added is
// the old text, and what is not removed the new one.
func wordChanges(before, after string) []piece {
	old, changed := splitWords(before), splitWords(after)
	if len(old)*len(changed) > maxCompared {
		return joined([]piece{{Text: before, Removed: true}, {Text: after, Added: true}})
	}
	common := commonWords(old, changed)
	var out []piece
	i, j := 0, 0
	for i < len(old) || j < len(changed) {
		switch {
		case i < len(old) && j < len(changed) && old[i] == changed[j]:
			out = append(out, piece{Text: old[i]})
			i, j = i+1, j+1
		case j == len(changed) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			out = append(out, piece{Text: old[i], Removed: true})
			i++
		default:
			out = append(out, piece{Text: changed[j], Added: true})
			j++
		}
	}
	if !related(out) {
		return joined([]piece{{Text: before, Removed: true}, {Text: after, Added: true}})
	}
	return joined(out)
}

// related tells whether enough was kept for a comparison to be readable: a third of the
// letters. Texts that share a few words by chance are better read one after the other.
func related(pieces []piece) bool {
	kept, all := 0, 0
	for _, p := range pieces {
		letters := len(strings.TrimSpace(p.Text))
		all += letters
		if !p.Added && !p.Removed {
			kept += letters
			all += letters // it stands in both texts
		}
	}
	return 3*kept >= all/2
}

// commonWords counts, for each pair of places, how many words both texts still share
// behind them in the same order.
func commonWords(a, b []string) [][]int32 {
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = make([]int32, len(b)+1)
	}
	for i := range slices.Backward(a) {
		for j := range slices.Backward(b) {
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// splitWords cuts a text into words and the white space between them.
func splitWords(text string) []string {
	var out []string
	begin, inSpace := 0, false
	for at, r := range text {
		if space := unicode.IsSpace(r); at == 0 || space != inSpace {
			if at > begin {
				out = append(out, text[begin:at])
			}
			begin, inSpace = at, space
		}
	}
	if begin < len(text) {
		out = append(out, text[begin:])
	}
	return out
}

// joined puts neighbours of one kind together, and what was taken out before what was
// put in for it, so that a changed sentence reads as two sentences and not as word
// salad.
func joined(pieces []piece) []piece {
	var out []piece
	var removed, added strings.Builder
	flush := func() {
		if removed.Len() > 0 {
			out = append(out, piece{Text: removed.String(), Removed: true})
		}
		if added.Len() > 0 {
			out = append(out, piece{Text: added.String(), Added: true})
		}
		removed.Reset()
		added.Reset()
	}
	var kept strings.Builder
	keep := func() {
		if kept.Len() > 0 {
			out = append(out, piece{Text: kept.String()})
		}
		kept.Reset()
	}
	for _, p := range pieces {
		switch {
		case p.Removed:
			keep()
			removed.WriteString(p.Text)
		case p.Added:
			keep()
			added.WriteString(p.Text)
		default:
			flush()
			kept.WriteString(p.Text)
		}
	}
	keep()
	flush()
	return out
}

// changes shows edits beside what was proposed.
func (a asking) changes(edits map[string]json.RawMessage) []ui.Pair {
	var pairs []ui.Pair
	for _, field := range a.content().Editable {
		value, changed := edits[field.Name]
		if !changed {
			continue
		}
		before := valueWords(field, a.Review.Now, a.zone)
		field.Value = value
		after := valueWords(field, a.Review.Now, a.zone)
		pairs = append(pairs, ui.Pair{Label: editor{EditableField: field}.title(), Part: changedText(wordChanges(before, after))})
	}
	return pairs
}

// changedText is a text with what was taken out of it and what was put in. White space
// counts in it, so it is written without a template's own.
type changedText []piece

// Render writes the text.
func (c changedText) Render(_ context.Context, w io.Writer) error {
	var out strings.Builder
	tag := "span"
	if slices.ContainsFunc(c, func(p piece) bool { return strings.Contains(p.Text, "\n") || len(p.Text) > longLine }) {
		tag = "p"
		out.WriteString(`<p class="said" dir="auto">`)
	} else {
		out.WriteString(`<span dir="auto">`)
	}
	for _, p := range c {
		text := html.EscapeString(ui.Clean(p.Text))
		switch {
		case p.Removed:
			text = "<del>" + text + "</del>"
		case p.Added:
			text = "<ins>" + text + "</ins>"
		}
		out.WriteString(text)
	}
	out.WriteString("</" + tag + ">")
	_, err := io.WriteString(w, out.String())
	return err
}
