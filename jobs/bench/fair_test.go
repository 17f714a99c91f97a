package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// stepTime is how long an outside call takes where tenants compete.
const stepTime = 50 * time.Millisecond

// slots is how many slices one working process drives at once, unless it is told
// otherwise.
const slots = 100

// watched answers after a while, and tells of the calls of one tenant.
type watched struct {
	atOnce
	guest tenants.ID
	seen  chan time.Time
}

// Call notes the step, of the guest apart.
func (w *watched) Call(ctx context.Context, call engine.Call) engine.Reply {
	if call.Tenant == w.guest {
		w.seen <- time.Now()
		return engine.Reply{Output: []byte(`{"message_id": "guest"}`)}
	}
	time.Sleep(stepTime)
	return w.atOnce.Call(ctx, call)
}

// fairness are the figures of W6: how long a tenant with one step waits behind one who
// has queued thousands, and how much of the installation that one gets.
func fairness(t *testing.T, s size) []*row {
	t.Helper()
	host := &house{}
	caller := &watched{atOnce: atOnce{&host.clock}, seen: make(chan time.Time, 1)}
	host.open(t, caller)
	guest := &house{db: host.db, engine: host.engine}
	guest.tenant, guest.owner = host.db.Tenant(t)
	caller.guest = guest.tenant
	host.allow(t, 10*slots, 10*s.crowd)
	crowd, single := host.publish(t, line(pipeline.KindEmail, stepsOfRun)), guest.publish(t, line(pipeline.KindEmail, 1))
	var share float64
	return []*row{
		{name: fmt.Sprintf("W6 one step behind %d of another tenant begins after", s.crowd*stepsOfRun), unit: "s", bar: "≤ 1", take: func() float64 {
			var waited time.Duration
			took := host.runBeside(t, crowd, s.crowd, func() { waited = guest.waitFor(t, single, caller.seen, host.clock.times) })
			share = 100 * took.rate() * stepTime.Seconds() / slots
			return waited.Seconds()
		}},
		{name: "W6 what the busy tenant got of all slots meanwhile", unit: "%", take: func() float64 { return share }},
	}
}

// allow gives the tenant quotas.
func (h *house) allow(t *testing.T, slices, runs int) {
	t.Helper()
	require.NoError(t, h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		return tenants.SetQuotas(ctx, tx, tenants.Quotas{ParallelSlices: slices, OpenRuns: runs})
	}))
}

// runBeside runs a crowd, and does something else once it is well under way.
func (h *house) runBeside(t *testing.T, id pipeline.ID, runs int, beside func()) took {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for h.clock.made() < runs*stepsOfRun/4 {
			time.Sleep(time.Millisecond)
		}
		beside()
	}()
	took := h.run(t, id, runs, stepsOfRun)
	<-done
	return took
}

// waitFor is the time from starting a run of one step until its call.
func (h *house) waitFor(t *testing.T, id pipeline.ID, seen chan time.Time, turn int) time.Duration {
	began := time.Now()
	if err := h.start(t.Context(), id, fmt.Sprint("guest ", turn)); err != nil {
		t.Error(err)
		return 0
	}
	return (<-seen).Sub(began)
}
