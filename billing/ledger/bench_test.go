package ledger_test

import (
	"context"
	"testing"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// BenchmarkHoldAndSettle is a hold and its settlement, each a commit of its own, for
// one capped tenant: all callers meet on the tenant's balance.
func BenchmarkHoldAndSettle(bench *testing.B) {
	b := open(bench)
	b.setCap(bench, ledger.OfTenant(b.tenant), ledger.Real, limit(ledger.MaxMicros))
	bench.SetParallelism(8)
	bench.ResetTimer()
	bench.RunParallel(func(each *testing.PB) {
		s := b.run(bench)
		for each.Next() {
			h := s.hold(100)
			must(bench, b.Send(context.Background(), b.tenant, holdBatch(h)))
			settle := &tenants.Batch{}
			ledger.QueueSettle(settle, h.Settle(tokens(60), receipt))
			must(bench, b.Send(context.Background(), b.tenant, settle))
		}
	})
	bench.ReportMetric(float64(bench.N)/bench.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkSettleWithNextHold is what a run of many steps does: the commit that settles
// one call holds for the next.
func BenchmarkSettleWithNextHold(bench *testing.B) {
	b := open(bench)
	b.setCap(bench, ledger.OfTenant(b.tenant), ledger.Real, limit(ledger.MaxMicros))
	bench.SetParallelism(8)
	bench.ResetTimer()
	bench.RunParallel(func(each *testing.PB) {
		s := b.run(bench)
		h := s.hold(100)
		must(bench, b.Send(context.Background(), b.tenant, holdBatch(h)))
		for each.Next() {
			both := &tenants.Batch{}
			ledger.QueueSettle(both, h.Settle(tokens(60), receipt))
			h = s.hold(100)
			ledger.QueueHold(both, h)
			must(bench, b.Send(context.Background(), b.tenant, both))
		}
	})
	bench.ReportMetric(float64(bench.N)/bench.Elapsed().Seconds(), "pairs/s")
}

// must reports from any goroutine, which require must not.
func must(bench *testing.B, err error) {
	if err != nil {
		bench.Error(err)
	}
}
