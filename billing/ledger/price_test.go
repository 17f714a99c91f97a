package ledger_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/billing/ledger"
)

// rates makes a price from dollars per million tokens times 1000; below 0 is unknown.
func rates(input, output, read, write int64) ledger.Price {
	rate := func(milli int64) ledger.Rate {
		if milli < 0 {
			return ledger.Rate{}
		}
		return ledger.PerMillion(ledger.Micros(milli * 1000))
	}
	return ledger.Price{Input: rate(input), Output: rate(output), CacheRead: rate(read), CacheWrite: rate(write)}
}

func TestCostOfUsageShapes(t *testing.T) {
	t.Parallel()
	cached := rates(3000, 15000, 300, 3750)
	openai := rates(1250, 10000, 125, -1)
	plain := rates(2000, 12000, -1, -1)
	tiny := rates(1, 1, 1, 1) // a thousand micros per million: one token is a thousandth of a micro
	claude := cached
	claude.CacheWriteLong = ledger.PerMillion(6 * ledger.Dollar)
	long := claude
	long.LongOver, long.Long = 200_000, ledger.Rates{Input: ledger.PerMillion(6 * ledger.Dollar), Output: ledger.PerMillion(22_500_000),
		CacheRead: ledger.PerMillion(600_000), CacheWrite: ledger.PerMillion(7_500_000), CacheWriteLong: ledger.PerMillion(12 * ledger.Dollar)}
	half := long
	half.Long.CacheRead = ledger.Rate{}
	cases := []struct {
		name   string
		price  ledger.Price
		tokens ledger.Tokens
		want   ledger.Micros
		guess  bool
	}{
		{"nothing", cached, ledger.Tokens{}, 0, false},
		{"S45: cache beside the input", cached, ledger.Tokens{Input: 5, CacheWrite: 20_000, CacheRead: 40_000, Output: 400}, 93_015, false},
		{"S45: cache inside the prompt, taken apart", openai, ledger.Tokens{Input: 10_000, CacheRead: 90_000, Output: 2_000}, 43_750, false},
		{"S46: thinking inside the completion, taken apart", plain, ledger.Tokens{Output: 34, Reasoning: 448}, 482 * 12, false},
		{"S46: thinking beside the completion", plain, ledger.Tokens{Output: 482, Reasoning: 448}, 930 * 12, false},
		{"input only", plain, ledger.Tokens{Input: 1_000_000}, 2_000_000, false},
		{"output only", plain, ledger.Tokens{Output: 1_000_000}, 12_000_000, false},
		{"thinking only, empty answer", plain, ledger.Tokens{Input: 100, Reasoning: 8_000}, 200 + 96_000, false},
		{"cache read only", cached, ledger.Tokens{CacheRead: 1_000_000}, 300_000, false},
		{"cache write only", cached, ledger.Tokens{CacheWrite: 1_000_000}, 3_750_000, false},
		{"every class", cached, ledger.Tokens{Input: 1, CacheRead: 10, CacheWrite: 100, Output: 1_000, Reasoning: 10_000}, 165_381, false},
		{"cache read without a rate counts as input", plain, ledger.Tokens{Input: 10, CacheRead: 90}, 200, true},
		{"cache write without a rate counts as input", openai, ledger.Tokens{CacheWrite: 1_000}, 1_250, true},
		{"no cache used, no guess", plain, ledger.Tokens{Input: 100, Output: 1}, 212, false},
		{"one token below half a micro", tiny, ledger.Tokens{Input: 1}, 0, false},
		{"just below half", tiny, ledger.Tokens{Input: 499}, 0, false},
		{"exactly half goes up", tiny, ledger.Tokens{Input: 500}, 1, false},
		{"halves of two classes are added before rounding", tiny, ledger.Tokens{Input: 250, Output: 250}, 1, false},
		{"one and a half goes up", tiny, ledger.Tokens{Output: 1_500}, 2, false},
		{"long context", plain, ledger.Tokens{Input: 999_999, Output: 1}, 2_000_010, false},
		{"free of charge is known", rates(0, 0, 0, 0), ledger.Tokens{Input: 1e6, Output: 1e6, CacheRead: 1e6}, 0, false},
		{"free reading", rates(0, 1000, -1, -1), ledger.Tokens{Input: 5e6, Output: 3}, 3, false},
		{"counts below 0 are nothing", plain, ledger.Tokens{Input: -5, Output: 1, Reasoning: math.MinInt64}, 12, false},
		{"hour's writes beside five minutes' (S45)", claude, ledger.Tokens{Input: 5, CacheRead: 40_000, CacheWrite: 8_000, CacheWriteLong: 12_000, Output: 400}, 15 + 12_000 + 30_000 + 72_000 + 6_000, false},
		{"hour's writes only", claude, ledger.Tokens{CacheWriteLong: 1_000_000}, 6_000_000, false},
		{"hour's writes without a rate count as five minutes'", cached, ledger.Tokens{CacheWriteLong: 1_000}, 3_750, true},
		{"hour's writes without any rate count as input", plain, ledger.Tokens{CacheWriteLong: 1_000}, 2_000, true},
		{"a long input at its threshold", long, ledger.Tokens{Input: 200_000, Output: 100}, 600_000 + 1_500, false},
		{"one token beyond it: all of it at the long rates", long, ledger.Tokens{Input: 200_001, Output: 100}, 1_200_006 + 2_250, false},
		{"long by its cached part", long, ledger.Tokens{Input: 1, CacheRead: 200_000}, 6 + 120_000, false},
		{"long by what it wrote into the cache", long, ledger.Tokens{Input: 1, CacheWrite: 200_000}, 6 + 1_500_000, false},
		{"long by an hour's writes", long, ledger.Tokens{Input: 1, CacheWriteLong: 200_000}, 6 + 2_400_000, false},
		{"a long answer is no long input", long, ledger.Tokens{Input: 10, Output: 300_000}, 30 + 4_500_000, false},
		{"thinking in a long call", long, ledger.Tokens{Input: 200_001, Reasoning: 100}, 1_200_006 + 2_250, false},
		{"long, cache read without its long rate", half, ledger.Tokens{Input: 200_001, CacheRead: 100}, 1_200_006 + 600, true},
		{"long without known long rates", ledger.Price{Input: plain.Input, Output: plain.Output, LongOver: 10}, ledger.Tokens{Input: 11}, 22, true},
		{"cached and thinking, every class and long", long, ledger.Tokens{Input: 100_000, CacheRead: 100_000, CacheWrite: 10_000, CacheWriteLong: 10_000, Output: 1_000, Reasoning: 1_000}, 600_000 + 60_000 + 75_000 + 120_000 + 45_000, false},
		{"beyond all money", plain, ledger.Tokens{Input: math.MaxInt64, Output: math.MaxInt64, Reasoning: math.MaxInt64}, ledger.MaxMicros, false},
		{"no output rate", rates(2000, -1, -1, -1), ledger.Tokens{Input: 1}, ledger.MaxMicros, false},
		{"no price at all", ledger.Price{}, ledger.Tokens{}, ledger.MaxMicros, false},
	}
	for _, c := range cases {
		require.Equal(t, c.want, c.price.Cost(c.tokens), c.name)
		require.Equal(t, c.guess, c.price.Guesses(c.tokens), c.name)
	}
}

func TestHoldForRoundsUpAndTakesTheDearest(t *testing.T) {
	t.Parallel()
	tiny := rates(1, 1, 1, 1)
	require.EqualValues(t, 1, tiny.HoldFor(1, 0))
	require.EqualValues(t, 1, tiny.HoldFor(500, 500))
	require.EqualValues(t, 2, tiny.HoldFor(500, 501))
	require.EqualValues(t, 0, tiny.HoldFor(0, 0))
	require.EqualValues(t, 3_750_000, rates(3000, 15000, 300, 3750).HoldFor(1_000_000, 0), "the cache may be written")
	require.EqualValues(t, 3_000_000, rates(3000, 15000, 300, -1).HoldFor(1_000_000, 0))
	require.Equal(t, ledger.MaxMicros, rates(3000, -1, 0, 0).HoldFor(1, 1))
	require.Equal(t, ledger.MaxMicros, rates(3000, 15000, -1, -1).HoldFor(math.MaxInt64, math.MaxInt64))
}

// Against exact arithmetic, with figures of every size: the cost is the exact sum
// rounded half up, and a call that keeps to its bounds never costs more than its hold.
func TestCostIsExactAndWithinItsHold(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	number := func() int64 { return chance.Int64N(1 << (1 + chance.IntN(45))) }
	for range 20_000 {
		in, out := ledger.Micros(number()), ledger.Micros(number())
		price := ledger.Price{Input: ledger.PerMillion(in), Output: ledger.PerMillion(out)}
		used := ledger.Tokens{Input: number(), Output: number(), Reasoning: number()}
		cost := price.Cost(used)

		exact := new(big.Int).Mul(big.NewInt(used.Input), big.NewInt(int64(in)))
		written := new(big.Int).Add(big.NewInt(used.Output), big.NewInt(used.Reasoning))
		exact.Add(exact, written.Mul(written, big.NewInt(int64(out))))
		exact.Add(exact, big.NewInt(500_000)).Div(exact, big.NewInt(1_000_000))
		if exact.Cmp(big.NewInt(int64(ledger.MaxMicros))) > 0 {
			exact.SetInt64(int64(ledger.MaxMicros))
		}
		require.Equal(t, exact.Int64(), int64(cost), "%+v at %v and %v", used, in, out)
		require.LessOrEqual(t, cost, price.HoldFor(used.Input, used.Output+used.Reasoning))
	}
}

// The same for all classes, unknown rates and long inputs, with whatever figures a fuzzer
// finds: the exact sum rounded half up, and never more than was reserved.
func FuzzCost(f *testing.F) {
	f.Add(int64(2_000_000), int64(12_000_000), int64(300_000), int64(3_750_000), int64(6_000_000), int64(200_000),
		int64(100), int64(90_000), int64(20_000), int64(10_000), int64(482), int64(448))
	f.Add(int64(-1), int64(0), int64(-1), int64(-1), int64(-1), int64(0), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(1), int64(-1), int64(5),
		int64(math.MaxInt64), int64(math.MinInt64), int64(7), int64(0), int64(math.MaxInt64), int64(-3))
	f.Fuzz(func(t *testing.T, in, out, read, write, hour, over, input, cacheRead, cacheWrite, cacheHour, output, reasoning int64) {
		rate := func(micros int64) ledger.Rate {
			if micros < 0 {
				return ledger.Rate{}
			}
			return ledger.PerMillion(min(ledger.Micros(micros), ledger.MaxMicros))
		}
		price := ledger.Price{Input: rate(in), Output: rate(out), CacheRead: rate(read), CacheWrite: rate(write), CacheWriteLong: rate(hour),
			LongOver: over, Long: ledger.Rates{Input: rate(out), Output: rate(in), CacheRead: rate(hour)}}
		bound := func(n int64) int64 { return max(0, min(n, 1<<40)) }
		used := ledger.Tokens{Input: bound(input), CacheRead: bound(cacheRead), CacheWrite: bound(cacheWrite), CacheWriteLong: bound(cacheHour),
			Output: bound(output), Reasoning: bound(reasoning)}
		cost := price.Cost(used)
		require.GreaterOrEqual(t, cost, ledger.Micros(0))
		require.LessOrEqual(t, cost, ledger.MaxMicros)
		readAll := used.Input + used.CacheRead + used.CacheWrite + used.CacheWriteLong
		require.LessOrEqual(t, cost, price.HoldFor(readAll, used.Output+used.Reasoning))
		if in < 0 || out < 0 {
			require.Equal(t, ledger.MaxMicros, cost)
			return
		}
		rates := []ledger.Rate{price.Input, price.CacheRead, price.CacheWrite, price.CacheWriteLong, price.Output}
		if over > 0 && readAll > over {
			rates = []ledger.Rate{price.Long.Input, price.Long.CacheRead, price.Long.CacheWrite, price.Long.CacheWriteLong, price.Long.Output}
		}
		micros := func(chain ...ledger.Rate) *big.Int {
			for _, r := range chain {
				if m, known := r.Micros(); known {
					return big.NewInt(int64(m))
				}
			}
			return new(big.Int)
		}
		exact := new(big.Int)
		add := func(n int64, rate *big.Int) { exact.Add(exact, rate.Mul(rate, big.NewInt(n))) }
		add(used.Input, micros(rates[0]))
		add(used.CacheRead, micros(rates[1], rates[0]))
		add(used.CacheWrite, micros(rates[2], rates[0]))
		add(used.CacheWriteLong, micros(rates[3], rates[2], rates[0]))
		add(used.Output, micros(rates[4]))
		add(used.Reasoning, micros(rates[4]))
		exact.Add(exact, big.NewInt(500_000)).Div(exact, big.NewInt(1_000_000))
		if exact.Cmp(big.NewInt(int64(ledger.MaxMicros))) > 0 {
			exact.SetInt64(int64(ledger.MaxMicros))
		}
		require.Equal(t, exact.Int64(), int64(cost))
	})
}
