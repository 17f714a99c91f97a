package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"tollgate/tenants"
)

// joined is the most that one transaction of the committer carries, joinedBytes the
// most that its values take together, beyond the one that passes it.
const (
	joined      = 128
	joinedBytes = 4 << 20
)

// committer joins the commitments of a tenant that are ready while another transaction
// of the tenant is under way: with one flush for all of them, and one statement for each
// kind of change. When nothing is under way it commits at once, so that a lone run never
// waits for company.
//
// A transaction that waits, for a row that somebody holds or for a connection that hangs,
// holds nobody up for long: who has been in line for a while goes on beside it.
//
// Whose guard does not hold must learn so, and harm no other: a transaction that fails
// is tried again in halves, down to single members, each of which then has its own fate.
type committer struct {
	send func(ctx context.Context, tenant tenants.ID, all []*commitment) error

	mu    sync.Mutex
	lines map[tenants.ID][]*member // of tenants with a transaction under way: who is next
}

// member is a commitment in line. Its fate is told once.
type member struct {
	*commitment
	fate chan error
}

func newCommitter(send func(context.Context, tenants.ID, []*commitment) error) *committer {
	return &committer{send: send, lines: map[tenants.ID][]*member{}}
}

// commit writes a commitment, maybe together with others, and returns when it is known
// what became of it. It does not return early: until then it may still be written.
func (c *committer) commit(one *commitment) error {
	m := &member{one, make(chan error, 1)}
	if c.first(m) {
		c.write([]*member{m})
		go c.goOn(one.tenant)
	}
	for {
		select {
		case fate := <-m.fate:
			return fate
		case <-time.After(longInLine):
			if beside := c.beside(m); len(beside) > 0 {
				c.write(beside)
			}
		}
	}
}

// longInLine is how long a member waits for the transaction that is under way.
const longInLine = 100 * time.Millisecond

// beside takes who is first in line, if the member still is in it.
func (c *committer) beside(m *member) []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.lines[m.tenant], m) {
		return nil
	}
	return c.take(m.tenant)
}

// first tells that nothing of the tenant is under way. Otherwise the member is in line.
func (c *committer) first(m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	line, busy := c.lines[m.tenant]
	if busy {
		c.lines[m.tenant] = append(line, m)
		return false
	}
	c.lines[m.tenant] = nil
	return true
}

// goOn writes what has come meanwhile until nobody is in line.
func (c *committer) goOn(tenant tenants.ID) {
	for next := c.next(tenant); len(next) > 0; next = c.next(tenant) {
		c.write(next)
	}
}

// next takes as many from the line as go into one transaction; none left frees the line.
func (c *committer) next(tenant tenants.ID) []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines[tenant]) == 0 {
		delete(c.lines, tenant)
		return nil
	}
	return c.take(tenant)
}

func (c *committer) take(tenant tenants.ID) []*member {
	line := c.lines[tenant]
	taken := together(line)
	c.lines[tenant] = line[taken:]
	return line[:taken]
}

// together is how many from the front of the line go into one transaction. Whoever ends
// its run, or changes rows that several branches share, has no other of its run beside
// it: their order would matter.
func together(line []*member) int {
	bytes := 0
	runs := map[RunID]bool{} // whether the run's one member must be alone
	for n, m := range line {
		alone := m.shares()
		other, met := runs[m.run]
		if n == joined || bytes > joinedBytes || met && (alone || other) {
			return n
		}
		runs[m.run] = alone
		bytes += m.size()
	}
	return len(line)
}

// write gives each member its fate. The context is nobody's: one caller who gives up
// must not take the others with it.
func (c *committer) write(members []*member) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	all := make([]*commitment, len(members))
	for n, m := range members {
		all[n] = m.commitment
	}
	err := c.send(ctx, members[0].tenant, all)
	if err != nil && len(members) > 1 && !tenants.IsTrouble(err) {
		half := len(members) / 2
		c.write(members[:half])
		c.write(members[half:])
		return
	}
	for _, m := range members {
		m.fate <- err
	}
}

// shares tells that a commitment changes rows that do not belong to its slice alone.
func (c *commitment) shares() bool {
	for _, entry := range c.changes {
		switch entry := entry.(type) {
		case insertStep, insertItems, beginItem, releaseItems, noteGroup, addAttempt, openWait, settle, hold, moveSlice, fork:
		case moveStep:
			if entry.joins {
				return true
			}
		case catchStep:
			if entry.slice.IsZero() {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// size is how many bytes of values a commitment brings.
func (c *commitment) size() int {
	bytes := 0
	for _, entry := range c.changes {
		switch entry := entry.(type) {
		case insertStep:
			bytes += len(entry.input) + len(entry.output)
		case moveStep:
			bytes += len(entry.output)
		case insertItems:
			for _, content := range entry.values {
				bytes += len(content)
			}
		}
	}
	return bytes
}

// sendAll commits the changes in one round trip; the slices go on.
func (e *Engine) sendAll(ctx context.Context, tenant tenants.ID, all []*commitment) error {
	batch := &tenants.Batch{ByKey: true}
	queueAll(batch, all)
	return e.DB.Send(ctx, tenant, batch)
}
