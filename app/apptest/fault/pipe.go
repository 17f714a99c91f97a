package fault

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// pipe is one connection through a proxy.
type pipe struct {
	proxy          *Proxy
	client, server net.Conn
	deaf           atomic.Bool // the server's answers are swallowed
}

// settle is how long the server gets to do what it was asked before its answer is lost.
const settle = 200 * time.Millisecond

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	<-p.mayFlow()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	one := &pipe{proxy: p, client: client, server: server}
	defer one.close()
	if !p.enter(one) {
		return
	}
	defer p.leave(one)
	go one.answers()
	one.requests()
}

// enter notes a connection; false where it is refused.
func (p *Proxy) enter(one *pipe) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuses {
		return false
	}
	p.pipes[one] = true
	return true
}

func (p *Proxy) leave(one *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pipes, one)
}

func (o *pipe) close() {
	_ = o.client.Close()
	_ = o.server.Close()
}

// answers carries what the server says.
func (o *pipe) answers() {
	defer o.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := o.server.Read(buffer)
		if err != nil {
			return
		}
		if o.deaf.Load() {
			_, _ = io.Copy(io.Discard, o.server)
			return
		}
		o.proxy.hold()
		if _, err := o.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// requests carries what the client says, until the answer to it shall get lost.
func (o *pipe) requests() {
	buffer := make([]byte, 1<<20)
	for {
		n, err := o.client.Read(buffer)
		if err != nil {
			return
		}
		o.proxy.hold()
		lost := o.proxy.losing(buffer[:n])
		o.deaf.Store(lost != nil)
		if _, err := o.server.Write(buffer[:n]); err != nil {
			return
		}
		if lost != nil {
			time.Sleep(settle)
			close(lost)
			return
		}
	}
}

// hold keeps a message back as long as the proxy is paused or slow.
func (p *Proxy) hold() {
	<-p.mayFlow()
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
}

func (p *Proxy) mayFlow() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flows
}

// losing tells that the answer to this message gets lost, and what to close then. It
// does so once for each order.
func (p *Proxy) losing(message []byte) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loses == nil || !p.loses(message) {
		return nil
	}
	p.loses = nil
	return p.lost
}
