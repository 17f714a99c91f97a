package engine

import (
	"context"

	"tollgate/tenants"
)

// committer joins the commitments of a tenant.
type committer = joiner[*commitment]

func newCommitter(send func(context.Context, tenants.ID, []*commitment) error) *committer {
	return newJoiner(send, together)
}

// joinedBytes is the most that the values of one transaction take together, beyond the one
// that passes it.
const joinedBytes = 4 << 20

// together is how many from the front of the line go into one transaction. Whoever ends
// its run, or changes rows that several branches share, has no other of its run beside
// it: their order would matter.
func together(line []*member[*commitment]) int {
	bytes := 0
	runs := map[RunID]bool{} // whether the run's one member must be alone
	for n, m := range line {
		alone := m.what.shares()
		other, met := runs[m.what.run]
		if n == joined || bytes > joinedBytes || met && (alone || other) {
			return n
		}
		runs[m.what.run] = alone
		bytes += m.what.size()
	}
	return len(line)
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
