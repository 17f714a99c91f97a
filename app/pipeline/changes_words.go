package pipeline

import (
	"slices"
	"strings"
	"unicode"
)

// wordKind tells whether a run of words is in both texts or in one of them.
type wordKind int

const (
	wordSame wordKind = iota
	wordRemoved
	wordAdded
)

// WordRun is a run of words of two texts that were compared.
type WordRun struct {
	Text           string
	Removed, Added bool // neither: it is in both
}

// DiffWords compares two texts word by word. The runs that are not removed make up the
// later text, those that are not added the earlier.
func DiffWords(before, after string) []WordRun {
	var out []WordRun
	for _, part := range diff(tokens(before), tokens(after)) {
		out = append(out, WordRun{strings.Join(part.tokens, ""), part.kind == wordRemoved, part.kind == wordAdded})
	}
	return out
}

// tokens splits a text into words and what is between them.
func tokens(text string) []string {
	var out []string
	begin, inWord := 0, false
	for i, r := range text {
		word := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
		if i > begin && (word != inWord || !word) {
			out = append(out, text[begin:i])
			begin = i
		}
		inWord = word
	}
	if begin < len(text) {
		out = append(out, text[begin:])
	}
	return out
}

// part is a run of tokens.
type part struct {
	tokens []string
	kind   wordKind
}

// maxCompared bounds the table that is filled; beyond it what differs is told as a whole.
const maxCompared = 4_000_000

// diff compares two lists of tokens by their longest common part.
func diff(before, after []string) []part {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	var out []part
	out = addPart(out, wordSame, before[:head])
	out = middle(out, before[head:len(before)-tail], after[head:len(after)-tail])
	return addPart(out, wordSame, before[len(before)-tail:])
}

func middle(out []part, before, after []string) []part {
	if len(before)*len(after) > maxCompared || len(before) == 0 || len(after) == 0 {
		return addPart(addPart(out, wordRemoved, before), wordAdded, after)
	}
	table := commonTable(before, after)
	width := len(after) + 1
	i, k := 0, 0
	for i < len(before) && k < len(after) {
		switch {
		case before[i] == after[k]:
			out = addPart(out, wordSame, before[i:i+1])
			i, k = i+1, k+1
		case table[(i+1)*width+k] >= table[i*width+k+1]:
			out = addPart(out, wordRemoved, before[i:i+1])
			i++
		default:
			out = addPart(out, wordAdded, after[k:k+1])
			k++
		}
	}
	return addPart(addPart(out, wordRemoved, before[i:]), wordAdded, after[k:])
}

// commonTable holds how long the common part of each two tails is.
func commonTable(before, after []string) []int32 {
	width := len(after) + 1
	table := make([]int32, (len(before)+1)*width)
	for i := len(before) - 1; i >= 0; i-- {
		for k := len(after) - 1; k >= 0; k-- {
			if before[i] == after[k] {
				table[i*width+k] = table[(i+1)*width+k+1] + 1
				continue
			}
			table[i*width+k] = max(table[(i+1)*width+k], table[i*width+k+1])
		}
	}
	return table
}

func addPart(out []part, kind wordKind, tokens []string) []part {
	if len(tokens) == 0 {
		return out
	}
	if last := len(out) - 1; last >= 0 && out[last].kind == kind {
		out[last].tokens = append(slices.Clip(out[last].tokens), tokens...)
		return out
	}
	return append(out, part{tokens, kind})
}
