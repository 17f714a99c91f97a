package pipeline

import (
	"reflect"
	"strings"
)

// rereadStep makes every formula and text of a step read other steps: those that renamed
// knows, by their new ids. The steps inside are left alone.
func rereadStep(s *Step, renamed map[string]string) {
	rereadValue(reflect.ValueOf(&s.With).Elem(), renamed)
	rereadValue(reflect.ValueOf(&s.OnError).Elem(), renamed)
}

var namesSteps = map[string]bool{"from": true}

// rereadValue goes through the texts of a configuration. Which of them are formulas does
// not matter: outside of formulas nobody writes steps.some_id of an id that exists.
func rereadValue(v reflect.Value, renamed map[string]string) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			rereadValue(v.Elem(), renamed)
		}
	case reflect.Slice:
		if v.Type() == rawType || v.Type().Elem() == stepType {
			return
		}
		for i := range v.Len() {
			rereadValue(v.Index(i), renamed)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Kind() == reflect.String && namesSteps[jsonName(v.Type().Field(i))] {
				if id, ok := renamed[f.String()]; ok {
					f.SetString(id)
				}
				continue
			}
			rereadValue(f, renamed)
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(reread(v.String(), renamed))
		}
	}
}

// reread replaces the ids behind "steps." and "callback." in a formula or in the
// insertions of a text, but not inside the quotes of a formula.
func reread(source string, renamed map[string]string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(source); {
		c := source[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(source):
			b.WriteString(source[i : i+2])
			i += 2
			continue
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && c == '"' && inFormula(source, i):
			quote = c
		case quote == 0 && !isNamePart(before(source, i)):
			if taken, id, ok := stepNamed(source[i:], renamed); ok {
				b.WriteString(taken + id)
				i += len(taken) + len(nameAt(source[i+len(taken):]))
				continue
			}
		}
		b.WriteByte(c)
		i++
	}
	return b.String()
}

// Quotes count where a formula is: everywhere but in the plain words of a text.
func inFormula(source string, at int) bool {
	if !strings.Contains(source, "{{") {
		return true
	}
	return strings.LastIndex(source[:at], "{{") > strings.LastIndex(source[:at], "}}")
}

func before(source string, i int) byte {
	if i == 0 {
		return ' '
	}
	return source[i-1]
}

func isNamePart(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// stepNamed tells whether a source begins with the place of a step that was renamed.
func stepNamed(source string, renamed map[string]string) (root, id string, ok bool) {
	for _, root := range []string{"steps.", "callback."} {
		if rest, found := strings.CutPrefix(source, root); found {
			id, ok = renamed[nameAt(rest)]
			return root, id, ok
		}
	}
	return "", "", false
}

func nameAt(source string) string {
	end := 0
	for end < len(source) && source[end] != '.' && isNamePart(source[end]) {
		end++
	}
	return source[:end]
}
