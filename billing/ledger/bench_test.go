package ledger_test

import (
	"context"
	"testing"

	"tollgate/billing/ledger"
)

// capped opens a ledger whose tenant, pipeline and runs have caps: three scopes that every
// call of all callers goes through, the last two of them in the same rows.
func capped(bench *testing.B) *books {
	b := open(bench)
	b.setCap(bench, ledger.OfTenant(b.tenant), ledger.Real, limit(ledger.MaxMicros))
	b.setCap(bench, ledger.OfPipeline(b.pipeline), ledger.Real, limit(ledger.MaxMicros))
	bench.SetParallelism(8)
	bench.ResetTimer()
	return b
}

func (b *books) cappedRun(bench *testing.B) step {
	s := b.run(bench)
	b.setCap(bench, ledger.OfRun(s.run), ledger.Real, limit(ledger.MaxMicros))
	return s
}

// BenchmarkHoldAndSettle is a hold and its settlement, each a commit of its own.
func BenchmarkHoldAndSettle(bench *testing.B) {
	b := capped(bench)
	bench.RunParallel(func(each *testing.PB) {
		s := b.cappedRun(bench)
		for each.Next() {
			h := s.hold(100)
			must(bench, b.book(context.Background(), ledger.Booking{Held: []ledger.Hold{h}}))
			must(bench, b.book(context.Background(), ledger.Booking{Settled: []ledger.Settlement{h.Settle(tokens(60), receipt)}}))
		}
	})
	bench.ReportMetric(float64(bench.N)/bench.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkSettleWithNextHold is what a run of many steps does: the commit that settles
// one call holds for the next.
func BenchmarkSettleWithNextHold(bench *testing.B) {
	b := capped(bench)
	bench.RunParallel(func(each *testing.PB) {
		s := b.cappedRun(bench)
		h := s.hold(100)
		must(bench, b.book(context.Background(), ledger.Booking{Held: []ledger.Hold{h}}))
		for each.Next() {
			settled := h.Settle(tokens(60), receipt)
			h = s.hold(100)
			must(bench, b.book(context.Background(), ledger.Booking{Settled: []ledger.Settlement{settled}, Held: []ledger.Hold{h}}))
		}
	})
	bench.ReportMetric(float64(bench.N)/bench.Elapsed().Seconds(), "pairs/s")
}

// BenchmarkBatched is what commits of many runs together do: twenty calls end and the next
// twenty begin.
func BenchmarkBatched(bench *testing.B) {
	const together = 20
	b := capped(bench)
	bench.SetParallelism(2)
	bench.RunParallel(func(each *testing.PB) {
		var steps []step
		for range together {
			steps = append(steps, b.cappedRun(bench))
		}
		var k ledger.Booking
		for n := 0; each.Next(); n++ {
			k.Held = append(k.Held, steps[n%together].hold(100))
			if len(k.Held) < together {
				continue
			}
			must(bench, b.book(context.Background(), k))
			next := ledger.Booking{}
			for _, h := range k.Held {
				next.Settled = append(next.Settled, h.Settle(tokens(60), receipt))
			}
			k = next
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
