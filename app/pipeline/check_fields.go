package pipeline

import (
	"fmt"
	"regexp"
	"strings"
)

// maxFieldDepth is how deep records and lists of fields may be nested.
const maxFieldDepth = 5

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// fields checks a list of fields. Names in taken are used by something else.
func (c *checker) fields(n *Node, path, what string, fields []Field, taken map[string]string) {
	c.fieldsWithin(n, path, what, fields, taken, 1)
}

// Names must be unique within their own record only.
func (c *checker) fieldsWithin(n *Node, path, what string, fields []Field, taken map[string]string, depth int) {
	if len(fields) > MaxFields {
		c.blocks(n, path, "%s has %d fields; at most %d are possible.", what, len(fields), MaxFields)
		return
	}
	seen := map[string]bool{}
	for i, f := range fields {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case f.Name == "":
			c.blocks(n, at+".name", "field %d of %s has no name. Give it one like “order_number”.", i+1, strings.ToLower(what))
		case !validName(f.Name):
			c.blocks(n, at+".name", "the field name “%s” cannot be used. %s.", shown(f.Name), nameRule)
		case seen[f.Name]:
			c.blocks(n, at+".name", "two fields are called “%s”. Rename one.", f.Name)
		case taken[f.Name] != "":
			c.blocks(n, at+".name", "the field name “%s” already means %s here. Choose another.", f.Name, taken[f.Name])
		}
		seen[f.Name] = true
		c.field(n, at, f, depth)
	}
}

// field checks one field but for its name.
func (c *checker) field(n *Node, path string, f Field, depth int) {
	title := "the field “" + shown(f.Title()) + "”"
	c.label(n, path+".label", title, f.Label, false)
	c.text(n, path+".help", "The help of "+title, f.Help)
	if depth > maxFieldDepth {
		c.blocks(n, path, "%s sits more than %d records or lists deep. Make it flatter.", title, maxFieldDepth)
		return
	}
	switch f.Type {
	case TypeChoice:
		c.choices(n, path, title, f.Choices)
	case TypeMoney:
		if f.Currency != "" && !currencyPattern.MatchString(f.Currency) {
			c.blocks(n, path+".currency", "%s has the currency “%s”. Use a code like EUR.", title, shown(f.Currency))
		}
	case TypeList:
		if f.Of == nil {
			c.blocks(n, path+".of", "%s is a list of nothing. Say what its entries are.", title)
		} else {
			c.field(n, path+".of", *f.Of, depth+1)
		}
	case TypeRecord:
		if len(f.Fields) == 0 {
			c.blocks(n, path+".fields", "%s is a record without fields. Add one.", title)
		}
		c.fieldsWithin(n, path+".fields", title, f.Fields, nil, depth+1)
	case TypeText, TypeNumber, TypeDate, TypeDateTime, TypeYesNo, TypeFile:
	default:
		c.blocks(n, path+".type", "%s has the unknown type “%s”. Choose one like text, number or date.", title, shown(string(f.Type)))
	}
}

// Values are what is stored and compared; labels may repeat, values may not.
func (c *checker) choices(n *Node, path, title string, choices []Choice) {
	if len(choices) == 0 || len(choices) > MaxFields {
		c.blocks(n, path+".choices", "%s has %s. Enter from 1 to %d.", title, plural(len(choices), "choice", "choices"), MaxFields)
	}
	seen := map[string]bool{}
	for i, k := range choices {
		at := fmt.Sprintf("%s.choices[%d]", path, i)
		c.label(n, at+".value", "choice "+fmt.Sprint(i+1)+" of "+title, k.Value, true)
		c.label(n, at+".label", "choice "+fmt.Sprint(i+1)+" of "+title, k.Label, false)
		if seen[k.Value] {
			c.blocks(n, at+".value", "%s has the choice “%s” twice. Remove one.", title, shown(k.Value))
		}
		seen[k.Value] = true
	}
}

// values checks a list of named formulas but for the formulas themselves.
func (c *checker) values(n *Node, path, what string, values []Value) {
	if len(values) > MaxFields {
		c.blocks(n, path, "%s has %d values; at most %d are possible.", what, len(values), MaxFields)
	}
	seen := map[string]bool{}
	for i, v := range values {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case v.Name == "":
			c.blocks(n, at+".name", "value %d has no name. Give it one like “total”.", i+1)
		case !validName(v.Name):
			c.blocks(n, at+".name", "the name “%s” cannot be used. %s.", shown(v.Name), nameRule)
		case seen[v.Name]:
			c.blocks(n, at+".name", "two values are called “%s”. Rename one.", v.Name)
		}
		seen[v.Name] = true
		if strings.TrimSpace(v.Formula) == "" {
			c.blocks(n, at+".formula", "“%s” has no value yet. Choose one or write a formula.", shown(v.Name))
		}
	}
}
