package outbound

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// Masks hides secrets in what comes back: the other side may repeat what it was sent, in
// an answer or in an error. The zero value hides nothing.
type Masks struct {
	replacer *strings.Replacer
	pairs    []maskPair
}

type maskPair struct{ secret, mask string }

// minMasked is the least length of a secret that is looked for, in bytes: anything shorter
// occurs in ordinary text.
const minMasked = 6

// Hide adds a secret under the name by which people know it, in every spelling in which
// it may travel. Called while nobody uses m yet.
func (m *Masks) Hide(name, secret string) {
	mask := "[secret " + name + "]"
	for _, spelling := range spellings(secret) {
		if len(spelling) >= minMasked {
			m.pairs = append(m.pairs, maskPair{spelling, mask})
		}
	}
	// Of several that begin at one place the longest counts.
	slices.SortStableFunc(m.pairs, func(a, b maskPair) int { return cmp.Compare(len(b.secret), len(a.secret)) })
	var list []string
	for _, pair := range m.pairs {
		list = append(list, pair.secret, pair.mask)
	}
	m.replacer = strings.NewReplacer(list...)
}

// spellings are the forms in which a text travels: as it is, encoded for addresses, for
// JSON and HTML, and in base 64 and 16.
func spellings(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		quoted = []byte(`""`) // a text can always be quoted
	}
	inJSON := string(quoted[1 : len(quoted)-1])
	raw := []byte(secret)
	list := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), inJSON, strings.ReplaceAll(inJSON, "/", `\/`), html.EscapeString(secret),
		base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Text is a text without the secrets.
func (m *Masks) Text(text string) string {
	if m == nil || m.replacer == nil {
		return text
	}
	return m.replacer.Replace(text)
}

// Bytes is any content without the secrets; content that has none is given back as it is.
func (m *Masks) Bytes(content []byte) []byte {
	if m == nil || m.replacer == nil {
		return content
	}
	text := string(content)
	for _, pair := range m.pairs {
		if strings.Contains(text, pair.secret) {
			return []byte(m.replacer.Replace(text))
		}
	}
	return content
}

// Value is a decoded JSON value without the secrets, in the names of its entries too. A
// number that is one becomes a text.
func (m *Masks) Value(value any) any {
	if m == nil || m.replacer == nil {
		return value
	}
	switch v := value.(type) {
	case string:
		return m.Text(v)
	case json.Number:
		if masked := m.Text(string(v)); masked != string(v) {
			return masked
		}
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = m.Value(one)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			out[m.Text(name)] = m.Value(one)
		}
		return out
	}
	return value
}
