// Package notice tells the people of a pipeline that its runs are in trouble: that they
// fail, stand still, wait for the AI spend cap, or wait for somebody who decides about a
// failure.
//
// # Ideas
//
// Nothing tells this room; it looks. Runs, waits and what the watchdog found are the truth,
// and each time that a run came into trouble is taken up once (gather.go), into the one
// notice that its pipeline has for that cause while it lasts. What is told of a notice, and
// when, is decided by a pure function (next.go): the beginning, once a day while it goes on
// growing, and what it came to when it is over. So ten thousand runs that fail for one cause
// are a mail and a digest.
//
// What is told is queued by the transaction that notes that it was (tell.go): mails in the
// outbox, messages to another system as rows (hook.go), which working processes send signed
// until they are taken.
//
// # Invariants
//
//   - A run is counted once for each time that it came into a trouble.
//   - A pipeline has at most one lasting notice for a kind and cause.
//   - People are told by their membership of today. Whoever left is not told; where nobody
//     is left of those named, the owners of the workspace are.
//   - Nothing told holds an amount, an input or a result: what happened, how often, where.
//
// Reading order: notice.go, settings.go, gather.go, next.go, tell.go, words.go, hook.go.
package notice
