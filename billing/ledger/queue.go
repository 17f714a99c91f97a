package ledger

import "tollgate/tenants"

// Booking is the money of calls that begin and end in one transaction.
type Booking struct {
	Settled  []Settlement
	Released []HoldID
	Held     []Hold
}

// Queue adds the booking to the batch, each place's balance changed once however many
// calls there are. The batch is void where any of the calls could not be booked: see
// QueueHold and QueueSettle. Of several holds that do not fit together it does not tell
// which did not; whoever books several then tries them singly.
func (k Booking) Queue(b *tenants.Batch) {
	if len(k.Settled)+len(k.Released)+len(k.Held) == 0 {
		return
	}
	settled, held := []settlementDocument{}, []holdDocument{}
	for _, s := range k.Settled {
		settled = append(settled, s.document())
	}
	for _, h := range k.Held {
		held = append(held, h.document())
	}
	released := k.Released
	if released == nil {
		released = []HoldID{}
	}
	b.Queue(`SELECT ledger_book($1::jsonb, $2::uuid[], $3::jsonb)`, settled, released, held)
}

// QueueHold adds a reservation to the batch. If it does not fit under a cap the whole
// batch is void with an error that AsCapReached reads. If the run or the step run does
// not exist in the batch's tenant, tenants.IsLostRace tells; if the id was used before,
// tenants.IsDuplicate.
func QueueHold(b *tenants.Batch, h Hold) { Booking{Held: []Hold{h}}.Queue(b) }

// QueueDispatch tells that the call of a parked hold is about to be sent. The batch is
// void (tenants.IsLostRace) if the hold has ended.
func QueueDispatch(b *tenants.Batch, id HoldID) {
	b.Guarded(`UPDATE holds SET dispatched = true
		WHERE tenant_id = ledger_tenant() AND id = $1 AND closed_at IS NULL RETURNING 1`, id)
}

// QueueSettle adds the final booking of a call. The batch is void (tenants.IsLostRace)
// if the hold has ended before, so a call is never charged twice.
func QueueSettle(b *tenants.Batch, s Settlement) { Booking{Settled: []Settlement{s}}.Queue(b) }

// QueueRelease gives a whole hold back: its call was not made, or was refused before
// the provider did any work. The batch is void (tenants.IsLostRace) if the hold has
// ended before.
func QueueRelease(b *tenants.Batch, id HoldID) { Booking{Released: []HoldID{id}}.Queue(b) }

// QueueAbandon ends what is still held for a step run's attempts up to the given one,
// when its worker was lost or its run cancelled: a call that may have reached the
// provider is booked at the reserved amount and marked, a parked one is given back.
// Holds that have ended stay as they are.
func QueueAbandon(b *tenants.Batch, step StepRunID, attempt int) {
	b.Queue(`SELECT ledger_abandon(id) FROM holds
		WHERE tenant_id = ledger_tenant() AND step_run_id = $1 AND attempt <= $2 AND state = 'open'
		ORDER BY id`, step, attempt)
}
