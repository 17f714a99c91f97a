package expr

import (
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads one JSON string. Text without escapes, by far the most common, is
// checked and copied in one go.
func (d *decoder) text() (string, error) {
	d.pos++
	start := d.pos
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			out, err := d.plainRun(start)
			if err == nil {
				d.pos++
			}
			return out, err
		case c == '\\':
			return d.escapedText(start)
		case c < 0x20:
			return "", errors.New("a line break or control character stands unescaped in a JSON string")
		default:
			d.pos++
		}
	}
	return "", errors.New("a JSON string is not closed")
}

// plainRun checks and returns the bytes from start to the current position.
func (d *decoder) plainRun(start int) (string, error) {
	run := d.data[start:d.pos]
	if utf8.Valid(run) {
		return string(run), nil
	}
	for i := 0; i < len(run); {
		r, size := utf8.DecodeRune(run[i:])
		if r == utf8.RuneError && size == 1 {
			d.pos = start + i
			break
		}
		i += size
	}
	return "", errors.New("the text is not valid UTF-8")
}

// Runs between escapes are checked and copied whole.
func (d *decoder) escapedText(start int) (string, error) {
	var out []byte
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"' || c == '\\':
			run, err := d.plainRun(start)
			if err != nil {
				return "", err
			}
			out = append(out, run...)
			d.pos++
			if c == '"' {
				return string(out), nil
			}
			if out, err = d.escape(out); err != nil {
				return "", err
			}
			start = d.pos
		case c < 0x20:
			return "", errors.New("a line break or control character stands unescaped in a JSON string")
		default:
			d.pos++
		}
	}
	return "", errors.New("a JSON string is not closed")
}

const (
	escapeLetters  = `"\/bfnrt`
	escapeMeanings = "\"\\/\b\f\n\r\t"
)

// escape reads what follows a backslash and appends what it stands for.
func (d *decoder) escape(out []byte) ([]byte, error) {
	c := d.peek()
	if c == 'u' {
		return d.escapedRune(out)
	}
	i := strings.IndexByte(escapeLetters, c)
	if c == 0 || i < 0 {
		return nil, errors.New("a JSON string holds an unknown escape")
	}
	d.pos++
	return append(out, escapeMeanings[i]), nil
}

// escapedRune joins the two halves of a pair and keeps a lone half as it is.
func (d *decoder) escapedRune(out []byte) ([]byte, error) {
	first, ok := d.hex()
	if !ok {
		return nil, errors.New(`a JSON string holds \u without four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(first) {
		return utf8.AppendRune(out, first), nil
	}
	before := d.pos
	if d.peek() == '\\' {
		d.pos++
		if d.peek() == 'u' {
			if second, ok := d.hex(); ok {
				if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
					return utf8.AppendRune(out, r), nil
				}
			}
		}
	}
	d.pos = before
	return appendHalf(out, first), nil
}

// hex reads u and four digits.
func (d *decoder) hex() (rune, bool) {
	if d.pos+5 > len(d.data) {
		return 0, false
	}
	var r rune
	for _, c := range d.data[d.pos+1 : d.pos+5] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	d.pos += 5
	return r, true
}

// appendHalf appends the lone half r of a character pair in the three bytes that
// UTF-8's pattern would give it. Go calls those bytes invalid, which is what
// makes a half tell itself apart from every real character.
func appendHalf(out []byte, r rune) []byte {
	return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
}

// halfAt reports the lone half that s begins with.
func halfAt(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2] < 0x80 || s[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}
