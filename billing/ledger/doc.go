// Package ledger answers where the money is: what a model call may cost, whether a cap
// allows it, what it did cost, and who pays.
//
// No call is made on trust. A hold reserves the most a call can cost before it starts,
// and a settlement books the real cost when it ends. Checking a sum first and adding to
// it later lets parallel calls pass a cap together; a hold cannot, because the check
// and the reservation are one change of one row.
//
// A hold counts in balances of several scopes (place.go): always in its run and the runs
// above it, its pipeline and its tenant's month; in a step with a limit, a cost centre, a
// provider key, the tests and the tenant's day from the moment these first get a cap, when
// their lines are added up. Each is changed only if spent + held stays within the cap.
// Periods are rows, made by their first hold, in the tenant's zone: nothing is ever reset.
// Funds keep real and pretend dollars apart, so that the practice model goes through the
// same ledger and never uses up a real cap.
//
// Invariants:
//
//   - spent + held never passes a cap by a hold. A call that costs more than was
//     reserved is booked in full, and the excess is its overrun: spent + held − overrun
//     stays within the cap as long as the cap is not lowered.
//   - A hold ends exactly once, settled or released, in the period it was made in.
//     A charge has its hold's id as its key.
//   - What is not known is never zero: an unknown price refuses the call, an unknown
//     outcome is booked at what was reserved and marked as an estimate.
//   - Charges are never changed. What becomes known of one later is a correction, a line of
//     its own in the month in which it is booked, so that a month which is over stays as it
//     is. Reconcile computes every balance again from holds, charges and corrections, and
//     names each difference.
//
// The Queue functions add to a tenants.Batch, so that money moves in the same commit as
// the step it belongs to. In one batch, settle first and hold after it: the next hold
// may then use what the settlement gives back. Balances are the last locks of a commit,
// always in the order of the scopes. Before them every booking shares a lock of its tenant
// which setting a cap takes alone, so that no hold passes a new cap unseen. The rules of
// holding and settling are SQL functions in migrations/0036_ledger_scopes.sql, so that each
// is one statement.
//
// Beside money the ledger counts how fast models are called: AskRate reserves calls and
// tokens a minute before a call, or tells it to wait, and SettleRate corrects that after it.
// Those who wait stand in a line, between workspaces by turns. Its rules are SQL functions
// in migrations/0043_rate_buckets.sql.
//
// Reading order: micros.go, price.go, pricelist.go, pricebook.go, priceedit.go (what things
// cost), place.go, hold.go, settlement.go, queue.go (the life of a hold),
// 0036_ledger_scopes.sql, cap.go, reached.go, room.go, standing.go, charge.go, correct.go,
// expire.go, reconcile.go; usage.go, usageroll.go, statement.go, forecast.go, preview.go,
// alert.go (what people are told); change.go, request.go, settings.go (who may change what);
// rate.go.
package ledger
