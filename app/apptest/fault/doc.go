// Package fault breaks things on purpose: it kills and freezes real processes, stands
// between a program and its database or any other server, crashes a Postgres of its
// own, and holds a transaction between its reading and its writing.
//
// The idea: the product has no hooks for tests. What dies here dies as it would in
// production, by a signal, a cut connection or a server that is gone, and what is held
// is held by the database itself.
//
// Invariants: whatever a test froze, paused or held is let go when the test ends, so
// that a failing test leaves nothing behind; a fault begins when the call that makes it
// has returned.
//
// Test-only: no production package may import it. Reading order: process.go, worker.go,
// postgres.go; proxy.go with pipe.go; gate.go.
package fault
