package pipeline

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// entry is one setting as changes tell of it.
type entry struct {
	path string // with ids in place of numbers: "with.cases[yes].when"
	list string // what it is an entry of: "an answer field", with its name; empty for none
	item string
	name string // the setting's own name in words
	text string
	long bool
}

// entriesOf lists the settings in v that hold something, in the order of the model. Steps
// inside and samples are left out.
func entriesOf(v any) []entry {
	var out []entry
	flatten(reflect.ValueOf(v), entry{}, &out)
	return out
}

// settingWords are the settings whose names in documents are not what people call them.
var settingWords = map[string]string{
	"models": "the model", "instructions": "the instructions", "prompt": "the prompt", "max_cost": "the most it may cost",
	"max_tokens": "the longest answer", "on_refusal": "what is done if the AI declines", "if_missing": "what is done if a field stays empty",
	"question": "the question", "body": "the text", "due": "the deadline", "on_deadline": "what happens at the deadline",
	"when": "the condition", "until": "the end condition", "max_rounds": "the most rounds", "max_time": "the longest time",
	"at_limit": "what happens at a limit", "items": "the list of items", "at_once": "how many at a time", "max_failed": "how many may fail",
	"url": "the address", "method": "the method", "to": "who gets it", "cc": "who gets a copy", "subject": "the subject",
	"formula": "the value", "run_cap": "the most a run may cost", "run_name": "the name of each run", "note": "the note",
	"name": "the name", "help": "the meaning", "type": "the type", "required": "whether it is required", "timeout": "the time limit",
	"rule": "how many must agree", "n": "the number that must agree", "for": "the time to wait", "deadline": "the deadline",
	"key": "the key", "data": "the data", "message": "the message", "exception": "the exception", "attempts": "how often it is tried",
	"pipeline": "the pipeline to run", "combine": "how results are combined", "wait_for": "what is waited for", "score": "the score",
	"email": "the address", "role": "the role", "result": "the result", "label": "the label",
}

// listWords are lists whose entries come and go by name.
var listWords = map[string]string{
	"answer": "the answer field", "input": "the field", "values": "the value", "cases": "the case", "branches": "the branch",
	"facts": "the fact", "people": "the person", "ask": "the person", "editable": "the editable field", "result": "the result",
	"headers": "the header", "query": "the query entry", "data": "the value", "on_error": "the answer to failures", "fields": "the field",
	"choices": "the choice",
}

// longSettings are compared word by word.
var longSettings = map[string]bool{"instructions": true, "prompt": true, "body": true, "question": true, "text": true, "message": true, "note": true}

func flatten(v reflect.Value, at entry, out *[]entry) {
	switch {
	case v.Type() == rawType:
		at.leaf(out, string(v.Bytes()))
		return
	case v.Type() == durationType:
		if v.Int() != 0 {
			at.leaf(out, Duration(v.Int()).String())
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			flatten(v.Elem(), at, out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := jsonName(v.Type().Field(i))
			if name == "steps" || name == "sample" || name == "id" {
				continue
			}
			inner := at
			inner.path += "." + name
			if name != "with" {
				inner.name = name
			}
			flatten(v.Field(i), inner, out)
		}
	case reflect.Slice:
		flattenList(v, at, out)
	case reflect.Map:
	case reflect.String:
		at.leaf(out, v.String())
	case reflect.Bool:
		if v.Bool() {
			at.leaf(out, "yes")
		}
	default:
		if v.Int() != 0 {
			at.leaf(out, at.number(v.Int()))
		}
	}
}

// flattenList keeps a list of texts as one setting, and names the entries of others.
func flattenList(v reflect.Value, at entry, out *[]entry) {
	if v.Type().Elem().Kind() == reflect.String {
		var texts []string
		for i := range v.Len() {
			texts = append(texts, v.Index(i).String())
		}
		at.leaf(out, strings.Join(texts, ", "))
		return
	}
	if v.Type().Elem() == stepType {
		return
	}
	for i := range v.Len() {
		one := at
		one.list, one.item = at.name, nameOf(v.Index(i), i)
		one.path += "[" + keyOf(v.Index(i), i) + "]"
		*out = append(*out, entry{path: one.path, list: one.list, item: one.item})
		flatten(v.Index(i), one, out)
	}
}

// keyOf is what makes an entry of a list the same in both documents.
func keyOf(v reflect.Value, i int) string {
	for _, name := range []string{"id", "name"} {
		if f := fieldNamed(v, name); f.IsValid() && f.Kind() == reflect.String && f.String() != "" {
			return f.String()
		}
	}
	if f := fieldNamed(v, "field"); f.IsValid() {
		return keyOf(f, i)
	}
	for _, name := range []string{"label", "email", "role", "user", "value"} {
		if f := fieldNamed(v, name); f.IsValid() && f.String() != "" {
			return f.String()
		}
	}
	return strconv.Itoa(i + 1)
}

// nameOf is what people call an entry of a list.
func nameOf(v reflect.Value, i int) string {
	if f := fieldNamed(v, "field"); f.IsValid() {
		v = f
	}
	for _, name := range []string{"label", "name", "email", "role", "user", "value"} {
		if f := fieldNamed(v, name); f.IsValid() && f.String() != "" {
			return f.String()
		}
	}
	return strconv.Itoa(i + 1)
}

func fieldNamed(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func (e entry) leaf(out *[]entry, text string) {
	if text == "" {
		return
	}
	e.text, e.long = text, longSettings[e.name] || strings.Contains(text, "\n") || len(text) > 120
	*out = append(*out, e)
}

// number writes money as money.
func (e entry) number(n int64) string {
	if e.name != "max_cost" && e.name != "run_cap" {
		return strconv.FormatInt(n, 10)
	}
	cents := strings.TrimRight(fmt.Sprintf("%06d", n%1e6), "0")
	return fmt.Sprintf("$%d.%s", n/1e6, cents+strings.Repeat("0", max(0, 2-len(cents))))
}

// words names the setting in a sentence.
func (e entry) words() string {
	name := settingWords[e.name]
	if name == "" {
		name = "“" + strings.ReplaceAll(e.name, "_", " ") + "”"
	}
	if e.item != "" {
		name += " of “" + shown(e.item) + "”"
	}
	return name
}

// entries compares two lists of settings of one step, or of the pipeline itself.
func (c *comparison) entries(step, title string, before, after []entry) {
	was, is := byPath(before), byPath(after)
	newItems := map[string]bool{}
	tell := func(says string) {
		if title == "" {
			says = strings.ToUpper(says[:1]) + says[1:]
		}
		c.say(step, "%s%s", title, says)
	}
	for _, e := range after {
		old, known := was[e.path]
		switch {
		case insideOf(newItems, e.path):
		case e.name == "" && e.list != "" && e.text == "":
			if !known {
				newItems[e.path] = true
				tell(listName(e) + " is added.")
			}
		case !known:
			c.set(tell, e)
		case old.text != e.text:
			c.changed(tell, old, e)
		}
	}
	for _, e := range before {
		if _, kept := is[e.path]; kept || insideOf(newItems, e.path) {
			continue
		}
		if e.text == "" {
			newItems[e.path] = true // told once, with all that is in it
			tell(listName(e) + " is removed.")
			continue
		}
		tell(e.words() + " is removed.")
	}
}

func byPath(all []entry) map[string]entry {
	out := map[string]entry{}
	for _, e := range all {
		out[e.path] = e
	}
	return out
}

// insideOf tells whether a setting belongs to an entry that was told as a whole.
func insideOf(items map[string]bool, path string) bool {
	for item := range items {
		if strings.HasPrefix(path, item) {
			return true
		}
	}
	return false
}

func listName(e entry) string {
	words := listWords[e.list]
	if words == "" {
		words = "the entry"
	}
	return words + " “" + shown(e.item) + "”"
}

func (c *comparison) set(tell func(string), e entry) {
	if e.long {
		tell(e.words() + " is new.")
		c.changes[len(c.changes)-1].After = e.text
		return
	}
	tell(fmt.Sprintf("%s is now “%s”.", e.words(), cut(oneLine(e.text), 120)))
}

func (c *comparison) changed(tell func(string), old, e entry) {
	if old.long || e.long {
		tell(e.words() + " changes.")
		last := &c.changes[len(c.changes)-1]
		last.Before, last.After = old.text, e.text
		return
	}
	tell(fmt.Sprintf("%s changes from “%s” to “%s”.", e.words(), cut(oneLine(old.text), 120), cut(oneLine(e.text), 120)))
}
