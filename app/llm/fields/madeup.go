package fields

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// aDay is the day around which dates are made up: a fixed one, since the
// same request must get the same answer tomorrow.
var aDay = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// MadeUp is a value that fits the schema: the first of the choices, sentence for
// every text, and the rest from seed. The same arguments give the same value. The
// schema must pass Check.
func (s *Schema) MadeUp(seed uint64, sentence string) []byte {
	m := maker{state: seed, sentence: sentence}
	m.value(s)
	return m.buf.Bytes()
}

// maker writes a made-up value.
type maker struct {
	buf      bytes.Buffer
	state    uint64
	sentence string
}

// next steps a splitmix64 generator: tiny, and the same in every release of Go.
func (m *maker) next(n uint64) uint64 {
	m.state += 0x9e3779b97f4a7c15
	z := m.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

func (m *maker) value(s *Schema) {
	switch s.Shape {
	case ShapeText:
		m.buf.Write(quote(m.sentence))
	case ShapeNumber:
		fmt.Fprintf(&m.buf, "%d.%02d", 10+m.next(990), m.next(100))
	case ShapeInteger:
		m.buf.WriteString(strconv.FormatUint(1+m.next(99), 10))
	case ShapeYesNo:
		m.buf.WriteString(strconv.FormatBool(m.next(2) == 0))
	case ShapeDate:
		m.buf.Write(quote(m.instant().Format(time.DateOnly)))
	case ShapeTime:
		m.buf.Write(quote(m.instant().Format(time.RFC3339)))
	case ShapeChoice:
		m.buf.Write(quote(s.Choices[0]))
	case ShapeList:
		m.list(s.Item)
	case ShapeRecord:
		m.record(s.Fields)
	}
}

func (m *maker) instant() time.Time {
	return aDay.AddDate(0, 0, int(m.next(90))) //nolint:gosec // below 90
}

func (m *maker) list(item *Schema) {
	m.buf.WriteByte('[')
	m.value(item)
	m.buf.WriteByte(',')
	m.value(item)
	m.buf.WriteByte(']')
}

func (m *maker) record(fields []Field) {
	m.buf.WriteByte('{')
	for i := range fields {
		if i > 0 {
			m.buf.WriteByte(',')
		}
		m.buf.Write(quote(fields[i].Name))
		m.buf.WriteByte(':')
		m.value(&fields[i].Schema)
	}
	m.buf.WriteByte('}')
}
