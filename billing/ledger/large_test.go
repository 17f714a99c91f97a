package ledger_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// manyCharges is how many a large ledger has; TOLLGATE_CHARGES says another number.
func manyCharges(t testing.TB) int {
	if text := os.Getenv("TOLLGATE_CHARGES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return 20_000
}

// A month of very many calls is read from few rows: by whatever it is summed up, with a
// forecast, a statement, and a cap that is set on a scope which was not counted before.
func TestLargeMonth(t *testing.T) {
	t.Parallel()
	b := open(t)
	n := manyCharges(t)
	month := b.monthAt(t, time.Now().AddDate(0, 0, -40))
	begin := month.To.AddDate(0, 0, -28)
	_, err := b.Super(t).Exec(t.Context(), `
		INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id, cost_centre,
			month_start, day_start, model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
			reserved_micros, cost_micros, estimated, request_id, finish, latency_ms, started_at)
		SELECT $1, gen_random_uuid(), md5('run' || i / 20)::uuid, gen_random_uuid(), 1, md5('pipeline' || i / 20 % 7)::uuid, 'real', 'own', 'ordinary',
			md5('key' || i % 2)::uuid, md5('member' || i / 20 % 30)::uuid, 'centre ' || i / 20 % 5, $2, date_trunc('day', l.at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC',
			'openai/gpt-' || i % 3, '', 100, 0, 0, 50, 0, 1000, 700, false, '', 'stop', 900, l.at
		FROM generate_series(0, $3 - 1) i CROSS JOIN LATERAL (SELECT $4::timestamptz + i * (interval '28 days' / $3) AS at) l`,
		b.tenant, month.From, n, begin)
	require.NoError(t, err)
	_, err = b.Super(t).Exec(t.Context(), `ANALYZE charges`)
	require.NoError(t, err)

	timed := func(what string, do func()) {
		began := time.Now()
		do()
		t.Logf("%d charges: %s in %v", n, what, time.Since(began).Round(time.Millisecond))
	}
	total := func() int64 {
		lines := b.usage(t, month, ledger.Real, ledger.ByMonth)
		require.Len(t, lines, 1)
		require.EqualValues(t, (n+19)/20, lines[0].Runs)
		return int64(lines[0].Cost)
	}
	timed("a total from its lines", func() { require.EqualValues(t, 700*n, total()) })
	timed("days summed up", func() {
		days, err := ledger.RollUsage(t.Context(), b.DB)
		require.NoError(t, err)
		require.GreaterOrEqual(t, days, 26)
	})
	timed("a total", func() { require.EqualValues(t, 700*n, total()) })
	for by, lines := range map[ledger.UsageBy]int{ledger.ByPipeline: 7, ledger.ByModel: 3, ledger.ByMember: 30, ledger.ByKey: 2, ledger.ByCostCentre: 5} {
		timed("by "+string(by), func() { require.Len(t, b.usage(t, month, ledger.Real, by), lines) })
	}
	timed("by day", func() { require.GreaterOrEqual(t, len(b.usage(t, month, ledger.Real, ledger.ByDay)), 28) })
	timed("a statement", func() { require.EqualValues(t, 700*n, b.statement(t, begin.Add(time.Hour)).Total()) })
	timed("a forecast", func() {
		b.in(t, func(ctx context.Context, tx tenants.Tx) error {
			_, err := ledger.ForecastOf(ctx, tx, ledger.OfPipeline(b.pipeline), ledger.Real, nil)
			return err
		})
	})
	timed("a first cap of a cost centre", func() { b.setCap(t, ledger.OfCostCentre("centre 1"), ledger.Real, limit(ledger.MaxMicros)) })
}
