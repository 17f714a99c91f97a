package pipeline

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// json indexes the places of a JSON text that can be read.
func (x *lineIndex) json(data []byte) {
	w := jsonWalk{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, index: x}
	w.decoder.UseNumber()
	w.value("")
}

type jsonWalk struct {
	decoder *json.Decoder
	data    []byte
	index   *lineIndex
	counted int // bytes whose lines are counted
	line    int // line breaks in them
}

// at is the line of the token that was read last.
func (w *jsonWalk) at() int {
	offset := int(w.decoder.InputOffset())
	w.line += bytes.Count(w.data[w.counted:offset], []byte("\n"))
	w.counted = offset
	return w.line + 1
}

func (w *jsonWalk) value(place string) {
	token, err := w.decoder.Token()
	if err != nil {
		return
	}
	text, _ := token.(string)
	w.index.note(place, w.at(), text)
	switch token {
	case json.Delim('{'):
		for w.decoder.More() {
			key, err := w.decoder.Token()
			if err != nil {
				return
			}
			name, _ := key.(string)
			w.index.note(under(place, name), w.at(), "")
			w.value(under(place, name))
		}
		_, _ = w.decoder.Token()
	case json.Delim('['):
		for i := 0; w.decoder.More(); i++ {
			w.value(place + "[" + strconv.Itoa(i) + "]")
		}
		_, _ = w.decoder.Token()
	}
}

func under(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

func indent(out *bytes.Buffer, data []byte) {
	if json.Indent(out, data, "", "  ") != nil {
		out.Write(data)
	}
	out.WriteByte('\n')
}
