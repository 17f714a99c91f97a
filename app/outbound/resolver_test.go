package outbound

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// fakeDNS answers names from a table, in process. A name with several rounds gives
// another answer each time it is asked, the last one for ever.
type fakeDNS struct {
	mu     sync.Mutex
	rounds map[string][]string
}

// resolver returns a real resolver of the standard library that asks the table.
func (d *fakeDNS) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go d.serve(theirs)
		return ours, nil
	}}
}

func (d *fakeDNS) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer := d.answer(query)
		if answer == nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer))) //nolint:gosec // small
		if _, err := conn.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

func (d *fakeDNS) answer(query []byte) []byte {
	var message dnsmessage.Message
	if message.Unpack(query) != nil || len(message.Questions) != 1 {
		return nil
	}
	question := message.Questions[0]
	message.Response, message.Additionals = true, nil
	addresses, known := d.look(question)
	if !known {
		message.RCode = dnsmessage.RCodeNameError
	}
	for _, addr := range addresses {
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET, TTL: 0}
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		if addr.Is4() {
			body = &dnsmessage.AResource{A: addr.As4()}
		}
		message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: body})
	}
	packed, err := message.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// look takes the next round of a name, and tells whether the table has it. Only
// the question for A counts as asking.
func (d *fakeDNS) look(question dnsmessage.Question) ([]netip.Addr, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := strings.TrimSuffix(question.Name.String(), ".")
	rounds := d.rounds[name]
	if len(rounds) == 0 {
		return nil, false
	}
	current := rounds[0]
	if len(rounds) > 1 && question.Type == dnsmessage.TypeA {
		d.rounds[name] = rounds[1:]
	}
	var list []netip.Addr
	for _, text := range strings.Fields(current) {
		addr := netip.MustParseAddr(text)
		if addr.Is4() == (question.Type == dnsmessage.TypeA) {
			list = append(list, addr)
		}
	}
	return list, true
}
