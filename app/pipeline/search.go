package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"tollgate/app/expr"
)

// Bounds of what runs are found by.
const (
	MaxSearch     = 8   // fields that a pipeline may name
	MaxSearchText = 100 // characters of a value that are compared
)

// The places whose fields may be named: what a run is started with, and what it hands back.
const (
	searchInput  = "input"
	searchResult = "result"
)

// SearchField is a field that runs are found by.
type SearchField struct {
	Name  string // "input.order_number"
	Title string // for people
}

// Found is what a run holds in a field that it can be found by, in the form that is compared.
type Found struct{ Field, Value string }

// SearchFields are the fields that runs are found by, as people know them.
func (d *Document) SearchFields() []SearchField {
	var fields []SearchField
	for _, name := range d.Search {
		field := SearchField{Name: name, Title: name}
		place, entry, _ := strings.Cut(name, ".")
		if place == searchInput {
			if i := slices.IndexFunc(d.Input, func(f Field) bool { return f.Name == entry }); i >= 0 {
				field.Title = d.Input[i].Title()
			}
		} else {
			field.Title = "Result: " + strings.ReplaceAll(entry, "_", " ")
		}
		fields = append(fields, field)
	}
	return fields
}

// Searchable lists the fields that could be named, in the order of the document.
func (d *Document) Searchable() []SearchField {
	all := Document{Input: d.Input}
	for _, f := range d.Input {
		if plainType(f.Type) {
			all.Search = append(all.Search, searchInput+"."+f.Name)
		}
	}
	for _, v := range d.Result {
		all.Search = append(all.Search, searchResult+"."+v.Name)
	}
	return all.SearchFields()
}

// plainType tells whether a field holds one value that can be compared as text.
func plainType(t FieldType) bool { return t != TypeFile && t != TypeList && t != TypeRecord }

// search checks the fields that runs are to be found by.
func (c *checker) search() {
	if len(c.doc.Search) > MaxSearch {
		c.blocks(nil, "search", "Runs are to be found by %d fields; at most %d are possible.", len(c.doc.Search), MaxSearch)
		return
	}
	possible := c.doc.Searchable()
	for i, name := range c.doc.Search {
		switch {
		case slices.Index(c.doc.Search, name) < i:
			c.blocks(nil, "search", "Runs are to be found by “%s” twice. Remove one.", shown(name))
		case !slices.ContainsFunc(possible, func(f SearchField) bool { return f.Name == name }):
			c.blocks(nil, "search", "Runs cannot be found by “%s”. Name a field of the start form or of the result that holds one text, number, date or choice, like “input.order_number”.", shown(name))
		}
	}
}

// FoundInInput is what a run that is started with this input can be found by.
func (p *Program) FoundInInput(input []byte) []Found { return p.found(searchInput, input) }

// FoundInResult is what a run with this result can be found by.
func (p *Program) FoundInResult(result []byte) []Found { return p.found(searchResult, result) }

// found reads the named fields of a record. What is empty or no plain value is not found.
func (p *Program) found(place string, data []byte) []Found {
	var fields []string
	for _, name := range p.doc.Search {
		if strings.HasPrefix(name, place+".") {
			fields = append(fields, name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	decoded, err := expr.DecodeJSON(data)
	record, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return nil
	}
	var all []Found
	for _, name := range fields {
		if value := SearchText(typedText(record[strings.TrimPrefix(name, place+".")])); value != "" {
			all = append(all, Found{name, value})
		}
	}
	return all
}

// typedText is a value as people would type it.
func typedText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case map[string]any:
		amount, _ := v["amount"].(json.Number)
		currency, isMoney := v["currency"].(string)
		if !isMoney {
			return ""
		}
		if text, ok := v["amount"].(string); ok {
			return text + " " + currency
		}
		return amount.String() + " " + currency
	}
	return ""
}

// SearchText is the form in which values and what people type are compared: small letters,
// single spaces, the first MaxSearchText characters.
func SearchText(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(expr.Plain(s)), " "))
	if utf8.RuneCountInString(s) > MaxSearchText {
		s = string([]rune(s)[:MaxSearchText])
	}
	return s
}
