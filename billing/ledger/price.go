package ledger

import (
	"math/bits"
	"time"

	"tollgate/tenants"
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

// Rates are what the classes of tokens cost.
type Rates struct {
	Input, Output  Rate
	CacheRead      Rate
	CacheWrite     Rate // for the provider's usual time, such as five minutes
	CacheWriteLong Rate // for an hour
}

// PriceID names a row of a tenant's own prices. It is zero for a price that the release
// knows.
type PriceID = tenants.IDOf[Price]

// Price is what a model costs from one instant to another. To is exclusive; the zero
// From and To leave that side open.
type Price struct {
	ID              PriceID
	Provider, Model string // Model without its provider: "gpt-5.6-terra"
	From, To        time.Time
	Input, Output   Rate
	CacheRead       Rate
	CacheWrite      Rate // for the provider's usual time, such as five minutes
	CacheWriteLong  Rate // for an hour
	// A call that reads more than LongOver tokens, of all classes, costs the rates of Long
	// for all of its tokens. 0: there is no such limit.
	LongOver int64
	Long     Rates
	Funds    Funds
	Source   string // where the figures come from
	AliasOf  string // the model whose price this is, where Model is another name of it
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

// read is how many tokens the model read.
func (t Tokens) read() int64 {
	return max(t.Input, 0) + max(t.CacheRead, 0) + max(t.CacheWrite, 0) + max(t.CacheWriteLong, 0)
}

// rates are those of a call that reads so many tokens. Where those of long ones are not
// known, the others stand in for them (see Guesses); Quote lets no such call begin.
func (p Price) rates(read int64) Rates {
	if p.long(read) && p.Long.complete() {
		return p.Long
	}
	return Rates{p.Input, p.Output, p.CacheRead, p.CacheWrite, p.CacheWriteLong}
}

// long tells that a call which reads so many tokens costs the rates of Long.
func (p Price) long(read int64) bool { return p.LongOver > 0 && read > p.LongOver }

// complete tells that a call can be priced: reading and writing have a rate.
func (r Rates) complete() bool { return r.Input.known && r.Output.known }

func (p Price) complete() bool { return p.rates(0).complete() }

// HoldFor is the most a call can cost that reads at most inputBound tokens and writes
// at most maxOutput, rounded up. Input counts at the dearest rate it may be billed at,
// which can be that of writing a cache or, where it may be long enough, of a long input.
// A price without an input or an output rate gives MaxMicros, which no cap allows.
func (p Price) HoldFor(inputBound, maxOutput int64) Micros {
	return max(p.rates(0).holdFor(inputBound, maxOutput), p.rates(inputBound).holdFor(inputBound, maxOutput))
}

func (r Rates) holdFor(inputBound, maxOutput int64) Micros {
	if !r.complete() {
		return MaxMicros
	}
	dearest := max(r.Input.micros, r.CacheRead.or(r.Input).micros, r.CacheWrite.or(r.Input).micros, r.longWrite().micros)
	var s sum
	s.add(inputBound, dearest)
	s.add(maxOutput, r.Output.micros)
	return s.perMillion(999_999)
}

// Cost is what the tokens cost, rounded half up. A cache class without a known rate
// counts at the input rate (see Guesses); reasoning counts as output. Counts below 0
// count as nothing.
func (p Price) Cost(t Tokens) Micros {
	r := p.rates(t.read())
	if !r.complete() {
		return MaxMicros
	}
	var s sum
	s.add(t.Input, r.Input.micros)
	s.add(t.CacheRead, r.CacheRead.or(r.Input).micros)
	s.add(t.CacheWrite, r.CacheWrite.or(r.Input).micros)
	s.add(t.CacheWriteLong, r.longWrite().micros)
	s.add(t.Output, r.Output.micros)
	s.add(t.Reasoning, r.Output.micros)
	return s.perMillion(500_000)
}

// Guesses tells that Cost had to use a rate in place of an unknown one, so that the
// charge must be marked as an estimate.
func (p Price) Guesses(t Tokens) bool {
	r := p.rates(t.read())
	return p.long(t.read()) && !p.Long.complete() ||
		t.CacheRead > 0 && !r.CacheRead.known || t.CacheWrite > 0 && !r.CacheWrite.known ||
		t.CacheWriteLong > 0 && !r.CacheWriteLong.known
}

// longWrite is the rate of writing a cache for an hour, or in its place the next best.
func (r Rates) longWrite() Rate { return r.CacheWriteLong.or(r.CacheWrite).or(r.Input) }

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
