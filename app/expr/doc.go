// Package expr reads and computes values: formulas, texts with insertions, and
// the exact JSON codec under both.
//
// # Values
//
// A value is JSON held in Go: nil, bool, string, json.Number, []any and
// map[string]any. Numbers stay in the digits in which they came, so that what is
// only carried along is never changed. Values are shared between goroutines and
// are never written to after they were made.
//
// # Rules of the codec
//
// DecodeJSON takes one JSON text of at most the size its caller allows, 500
// levels deep. It refuses broken UTF-8, naming the byte, and a record that has
// the same name twice, naming it. An escaped lone half of a character pair is
// kept: inside Go strings it is the three bytes that the half would have in
// UTF-8, which EncodeJSON writes as the same escape again. NUL (\u0000) is kept
// in values too, because values are stored as bytes. Two functions stand where
// text leaves for a place that takes neither: Plain replaces both by U+FFFD, for
// showing, and CheckText refuses NUL and broken text, for what a person named
// and what a database keeps as text. Text.Render and Words give Plain text.
//
// # Formulas
//
// A formula is CEL with its own arithmetic. There is one kind of number:
// integers are exact to 64 bits, decimals to 200 digits, 0.1 + 0.2 is 0.3 and 7 /
// 2 is 3.5. Only a division that does not come out even is rounded, to 34
// significant digits. Money, {"amount", "currency"}, can be added and compared
// within one currency. What cannot be computed exactly is refused with a
// sentence. A formula that only names a place, like input.order, hands over what
// is there byte for byte, numbers of any size included.
//
// A formula sees the roots input, steps, item, index, round, run, error and callback, where another
// system's answer is judged only the root answer, and nothing else: no clock, no network, no files. It is bounded in source length,
// in computing cost, in time, and in the size of every text and list it builds.
//
// Reading order: json.go and encode.go, number.go, value.go (between JSON and
// CEL), operators.go and functions.go (what formulas can do), rewrite.go (from
// CEL's syntax tree to ours), formula.go, text.go, words.go, jq.go (for other systems).
package expr
