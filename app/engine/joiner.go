package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"tollgate/tenants"
)

// joiner joins what a tenant's callers want of the database while another transaction of
// the tenant is under way: one round trip and one flush for all of them, and one statement
// for each kind of work. When nothing is under way it goes at once, so that a lone caller
// never waits for company.
//
// A transaction that waits, for a row that somebody holds or for a connection that hangs,
// holds nobody up for long: who has been in line for a while goes on beside it.
//
// Whoever makes a transaction fail must learn so, and harm no other: it is tried again in
// halves, down to single members, each of which then has its own fate.
type joiner[What any] struct {
	send func(ctx context.Context, tenant tenants.ID, all []What) error
	fit  func(line []*member[What]) int // how many from the front go together, at least one

	mu    sync.Mutex
	lines map[tenants.ID][]*member[What] // of tenants with a transaction under way: who is next
}

// member is what somebody in line wants. Its fate is told once.
type member[What any] struct {
	what What
	fate chan error
}

func newJoiner[What any](send func(context.Context, tenants.ID, []What) error, fit func([]*member[What]) int) *joiner[What] {
	return &joiner[What]{send: send, fit: fit, lines: map[tenants.ID][]*member[What]{}}
}

// joined is the most that one transaction of a joiner carries.
const joined = 128

// asManyAsJoin is the fit of what needs no other rule.
func asManyAsJoin[What any](line []*member[What]) int { return min(len(line), joined) }

// do has one thing done, maybe together with others, and returns when it is known what
// became of it. It does not return early: until then it may still be done.
func (j *joiner[What]) do(tenant tenants.ID, what What) error {
	m := &member[What]{what, make(chan error, 1)}
	if j.first(tenant, m) {
		j.work(tenant, []*member[What]{m})
		go j.goOn(tenant)
	}
	for {
		select {
		case fate := <-m.fate:
			return fate
		case <-time.After(longInLine):
			if beside := j.beside(tenant, m); len(beside) > 0 {
				j.work(tenant, beside)
			}
		}
	}
}

// longInLine is how long a member waits for the transaction that is under way.
const longInLine = 100 * time.Millisecond

// beside takes who is first in line, if the member still is in it.
func (j *joiner[What]) beside(tenant tenants.ID, m *member[What]) []*member[What] {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.lines[tenant], m) {
		return nil
	}
	return j.take(tenant)
}

// first tells that nothing of the tenant is under way. Otherwise the member is in line.
func (j *joiner[What]) first(tenant tenants.ID, m *member[What]) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	line, busy := j.lines[tenant]
	if busy {
		j.lines[tenant] = append(line, m)
		return false
	}
	j.lines[tenant] = nil
	return true
}

// goOn works until nobody is in line.
func (j *joiner[What]) goOn(tenant tenants.ID) {
	for next := j.next(tenant); len(next) > 0; next = j.next(tenant) {
		j.work(tenant, next)
	}
}

// next takes as many from the line as go into one transaction; none left frees the line.
func (j *joiner[What]) next(tenant tenants.ID) []*member[What] {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines[tenant]) == 0 {
		delete(j.lines, tenant)
		return nil
	}
	return j.take(tenant)
}

func (j *joiner[What]) take(tenant tenants.ID) []*member[What] {
	line := j.lines[tenant]
	taken := j.fit(line)
	j.lines[tenant] = line[taken:]
	return line[:taken]
}

// work gives each member its fate. The context is nobody's: one caller who gives up must
// not take the others with it.
func (j *joiner[What]) work(tenant tenants.ID, members []*member[What]) {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	all := make([]What, len(members))
	for n, m := range members {
		all[n] = m.what
	}
	err := j.send(ctx, tenant, all)
	if err != nil && len(members) > 1 && !tenants.IsTrouble(err) {
		half := len(members) / 2
		j.work(tenant, members[:half])
		j.work(tenant, members[half:])
		return
	}
	for _, m := range members {
		m.fate <- err
	}
}
