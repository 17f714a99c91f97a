package pipeline

import (
	"regexp"
	"strings"

	"tollgate/app/expr"
)

// DataNames turn the places in formulas and texts into names for people and back: what is
// stored is {{ steps.triage.category }}, what is read and typed [Sort the e-mail › Category].
// What has no name of its own is shown as it is stored, and every text comes back as it
// was stored.
type DataNames struct {
	refs  map[string]string // by name
	names map[string]string // by ref
}

// NewDataNames gives each value a name. Those that would share one are told apart by the id of
// their step.
func NewDataNames(data []Datum) *DataNames {
	shared := map[string]map[string]bool{}
	for _, d := range data {
		if shared[d.name("")] == nil {
			shared[d.name("")] = map[string]bool{}
		}
		shared[d.name("")][d.Ref] = true
	}
	n := &DataNames{refs: map[string]string{}, names: map[string]string{}}
	for _, d := range data {
		name := d.name("")
		if len(shared[name]) > 1 {
			name = d.name(" (" + strings.TrimPrefix(d.Ref[:strings.LastIndexByte(d.Ref, '.')+1], "steps.") + ")")
			name = strings.Replace(name, ".)", ")", 1)
		}
		if strings.ContainsAny(name, "[]{}") || n.refs[name] != "" && n.refs[name] != d.Ref {
			continue
		}
		n.refs[name], n.names[d.Ref] = d.Ref, name
	}
	return n
}

// A name stands among formulas, where plain quotes would begin a text.
func (d Datum) name(mark string) string {
	return typographic.Replace(oneLine(d.From) + mark + " › " + oneLine(d.Label))
}

var typographic = strings.NewReplacer("'", "’", `"`, "”")

// Of is the name of a value; empty where it has none.
func (n *DataNames) Of(ref string) string { return n.names[ref] }

// partOf is the name of a value, or of a part of one whose parts nobody knows: the name of
// the whole, and what formulas call the part.
func (n *DataNames) partOf(ref string) string {
	rest := ""
	for whole := ref; ; {
		if name, ok := n.names[whole]; ok {
			return name + rest
		}
		dot := strings.LastIndexByte(whole, '.')
		if dot < 0 {
			return ""
		}
		whole, rest = whole[:dot], ": "+whole[dot+1:]+rest
	}
}

// refOf reads what partOf writes; empty for what is no name.
func (n *DataNames) refOf(name string) string {
	rest := ""
	for {
		if ref, ok := n.refs[name]; ok {
			if _, place := expr.Place(ref + rest); !place {
				return ""
			}
			return ref + rest
		}
		at := strings.LastIndex(name, ": ")
		if at < 0 {
			return ""
		}
		name, rest = name[:at], "."+name[at+2:]+rest
	}
}

// emptyWords part a name from what is inserted where its value is empty.
const emptyWords = ", if empty: "

var (
	storedInsertion = regexp.MustCompile(`\{\{\s*(?:default\(\s*)?([a-z][A-Za-z0-9_.]*)\s*(?:,\s*"([^"\\\[\]{}]*)"\s*\))?\s*\}\}`)
	bracketed       = regexp.MustCompile(`\[([^\[\]{}]{1,400})\]`)
)

// ShownText is a stored text as people read and type it.
func (n *DataNames) ShownText(stored string) string {
	shown := storedInsertion.ReplaceAllStringFunc(stored, func(found string) string {
		parts := storedInsertion.FindStringSubmatch(found)
		name := n.partOf(parts[1])
		if name == "" {
			return found
		}
		if strings.Contains(found, "default(") {
			return "[" + name + emptyWords + parts[2] + "]"
		}
		return "[" + name + "]"
	})
	if n.StoredText(shown) != spelled(stored) {
		return stored
	}
	return shown
}

// spelled writes the insertions of a text as StoredText does.
func spelled(stored string) string {
	return storedInsertion.ReplaceAllStringFunc(stored, func(found string) string {
		parts := storedInsertion.FindStringSubmatch(found)
		if strings.Contains(found, "default(") {
			return `{{ default(` + parts[1] + `, "` + parts[2] + `") }}`
		}
		return "{{ " + parts[1] + " }}"
	})
}

// StoredText is what was typed as it is stored.
func (n *DataNames) StoredText(typed string) string {
	return bracketed.ReplaceAllStringFunc(typed, func(found string) string {
		name, empty, guarded := strings.Cut(found[1:len(found)-1], emptyWords)
		ref := n.refOf(name)
		switch {
		case ref == "" || strings.ContainsAny(empty, `"\`):
			return found
		case guarded:
			return `{{ default(` + ref + `, "` + empty + `") }}`
		}
		return "{{ " + ref + " }}"
	})
}

// ShownFormula is a stored formula as people read and type it.
func (n *DataNames) ShownFormula(stored string) string {
	shown := overPlaces(stored, func(place string) string {
		parts := strings.Split(place, ".")
		for end := len(parts); end > 0; end-- {
			if name, ok := n.names[strings.Join(parts[:end], ".")]; ok {
				return strings.Join(append([]string{"[" + name + "]"}, parts[end:]...), ".")
			}
		}
		return place
	})
	if n.StoredFormula(shown) != stored {
		return stored
	}
	return shown
}

// StoredFormula is what was typed as it is stored.
func (n *DataNames) StoredFormula(typed string) string {
	return outsideQuotes(typed, func(part string) string {
		return bracketed.ReplaceAllStringFunc(part, func(found string) string {
			if ref, ok := n.refs[found[1:len(found)-1]]; ok {
				return ref
			}
			return found
		})
	})
}

// overPlaces replaces the names after dots of a formula, as a whole, outside of quotes.
func overPlaces(formula string, replace func(string) string) string {
	return outsideQuotes(formula, func(part string) string {
		var b strings.Builder
		for i := 0; i < len(part); {
			end := i
			for end < len(part) && isNamePart(part[end]) {
				end++
			}
			if end == i {
				b.WriteByte(part[i])
				i++
				continue
			}
			b.WriteString(replace(part[i:end]))
			i = end
		}
		return b.String()
	})
}

// outsideQuotes replaces the parts of a formula that are not inside of quotes.
func outsideQuotes(formula string, replace func(string) string) string {
	var b strings.Builder
	begin := 0
	for i := 0; i < len(formula); i++ {
		if formula[i] != '"' && formula[i] != '\'' {
			continue
		}
		end := closingQuote(formula, i)
		b.WriteString(replace(formula[begin:i]))
		b.WriteString(formula[i:end])
		begin, i = end, end-1
	}
	b.WriteString(replace(formula[begin:]))
	return b.String()
}

// closingQuote is behind the quote that closes the one at i, or the end.
func closingQuote(formula string, i int) int {
	quote := formula[i]
	for i++; i < len(formula); i++ {
		switch formula[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(formula)
}
