// Package ledger answers where the money is: what a model call may cost, whether a cap
// allows it, what it did cost, and who pays.
//
// No call is made on trust. A hold reserves the most a call can cost before it starts,
// and a settlement books the real cost when it ends. Checking a sum first and adding to
// it later lets parallel calls pass a cap together; a hold cannot, because the check
// and the reservation are one change of one row.
//
// A hold counts in three balances: its run (once), its pipeline and its tenant (by
// calendar month in the tenant's zone). Each is changed only if spent + held stays
// within the cap. Funds keep real and pretend dollars apart, so that the practice model
// goes through the same ledger and never uses up a real cap.
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
//   - Charges are never changed. Reconcile computes every balance again from holds and
//     charges, and names each difference.
//
// The Queue functions add to a tenants.Batch, so that money moves in the same commit as
// the step it belongs to. In one batch, settle first and hold after it: the next hold
// may then use what the settlement gives back. Balances are the last locks of a commit,
// always in the order run, pipeline, tenant. The rules of holding and settling are SQL
// functions in migrations/0005_ledger.sql, so that each is one statement.
//
// Beside money the ledger counts how fast models are called: AskRate reserves calls and
// tokens a minute before a call, or tells it to wait, and SettleRate corrects that after it.
// Those who wait stand in a line, between workspaces by turns. Its rules are SQL functions
// in migrations/0043_rate_buckets.sql.
//
// Reading order: micros.go, price.go, pricelist.go (what things cost), hold.go,
// settlement.go, queue.go (the life of a hold), 0005_ledger.sql, cap.go, reached.go,
// standing.go, charge.go, expire.go, reconcile.go; rate.go.
package ledger
