package ledger

import (
	"math/bits"
	"time"
)

// Funds are what money is paid from. Pretend dollars pay the practice model; they have
// caps and balances of their own.
type Funds string

// The funds there are.
const (
	Real    Funds = "real"
	Pretend Funds = "pretend"
)

// Rate is what a million tokens of one class cost. The zero value is a rate that nobody
// knows, which is never taken for free.
type Rate struct {
	micros Micros
	known  bool
}

// PerMillion is a known rate.
func PerMillion(micros Micros) Rate { return Rate{micros: micros, known: true} }

// Micros returns the rate in micros per million tokens, and whether it is known.
func (r Rate) Micros() (Micros, bool) { return r.micros, r.known }

// or is the rate to count with where this one may be unknown.
func (r Rate) or(other Rate) Rate {
	if r.known {
		return r
	}
	return other
}

// Price is what a model costs from one instant to another. To is exclusive; the zero
// From and To leave that side open.
type Price struct {
	Provider, Model string // Model without its provider: "gpt-5.6-terra"
	From, To        time.Time
	Input, Output   Rate
	CacheRead       Rate
	CacheWrite      Rate // for the provider's usual time, such as five minutes
	CacheWriteLong  Rate // for an hour
	Funds           Funds
	Source          string // where the figures come from
}

// Tokens are what a call used, in classes that do not overlap.
type Tokens struct {
	Input          int64 // read, neither from nor into a cache
	CacheRead      int64
	CacheWrite     int64 // read and written into the provider's cache
	CacheWriteLong int64 // the same, kept there for an hour
	Output         int64 // written as the answer
	Reasoning      int64 // written as thinking, beside Output
	Estimated      bool  // the provider did not tell them in full
}

// maxTokens is more than any model can read or write in one call. Figures beyond it are
// a slip of the provider, and are not believed.
const maxTokens = 100_000_000

func (t Tokens) plausible() bool {
	for _, n := range []int64{t.Input, t.CacheRead, t.CacheWrite, t.CacheWriteLong, t.Output, t.Reasoning} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return true
}

// complete tells that a call can be priced: reading and writing have a rate.
func (p Price) complete() bool { return p.Input.known && p.Output.known }

// HoldFor is the most a call can cost that reads at most inputBound tokens and writes
// at most maxOutput, rounded up. Input counts at the dearest rate it may be billed at,
// which can be that of writing a cache. A price without an input or an output rate
// gives MaxMicros, which no cap allows.
func (p Price) HoldFor(inputBound, maxOutput int64) Micros {
	if !p.complete() {
		return MaxMicros
	}
	dearest := max(p.Input.micros, p.CacheRead.or(p.Input).micros, p.CacheWrite.or(p.Input).micros, p.longWrite().micros)
	var s sum
	s.add(inputBound, dearest)
	s.add(maxOutput, p.Output.micros)
	return s.perMillion(999_999)
}

// Cost is what the tokens cost, rounded half up. A cache class without a known rate
// counts at the input rate (see Guesses); reasoning counts as output. Counts below 0
// count as nothing.
func (p Price) Cost(t Tokens) Micros {
	if !p.complete() {
		return MaxMicros
	}
	var s sum
	s.add(t.Input, p.Input.micros)
	s.add(t.CacheRead, p.CacheRead.or(p.Input).micros)
	s.add(t.CacheWrite, p.CacheWrite.or(p.Input).micros)
	s.add(t.CacheWriteLong, p.longWrite().micros)
	s.add(t.Output, p.Output.micros)
	s.add(t.Reasoning, p.Output.micros)
	return s.perMillion(500_000)
}

// Guesses tells that Cost had to use a rate in place of an unknown one, so that the
// charge must be marked as an estimate.
func (p Price) Guesses(t Tokens) bool {
	return t.CacheRead > 0 && !p.CacheRead.known || t.CacheWrite > 0 && !p.CacheWrite.known ||
		t.CacheWriteLong > 0 && !p.CacheWriteLong.known
}

// longWrite is the rate of writing a cache for an hour, or in its place the next best.
func (p Price) longWrite() Rate { return p.CacheWriteLong.or(p.CacheWrite).or(p.Input) }

// sum adds up tokens times rates in 128 bits, so that nothing is lost or wraps before
// the one division at the end.
type sum struct{ hi, lo uint64 }

func (s *sum) add(tokens int64, rate Micros) {
	if tokens <= 0 || rate <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(min(rate, MaxMicros)))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
}

// perMillion divides by a million after adding extra, which decides the rounding.
// Results beyond MaxMicros become MaxMicros.
func (s *sum) perMillion(extra uint64) Micros {
	const million = 1_000_000
	lo, carry := bits.Add64(s.lo, extra, 0)
	hi := s.hi + carry
	if hi >= million {
		return MaxMicros
	}
	quotient, _ := bits.Div64(hi, lo, million)
	return Micros(min(quotient, uint64(MaxMicros)))
}
