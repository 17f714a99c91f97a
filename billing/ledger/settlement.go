package ledger

import "time"

// Receipt is what a provider told about an answered call, beside its tokens.
type Receipt struct {
	Model     string // as billed, which may be a dated name of what was asked for
	RequestID string
	Finish    string // why the answer ended
	Latency   time.Duration
}

// Settlement ends a hold with what its call cost.
type Settlement struct {
	Hold      HoldID
	Unknown   bool   // nothing is known: the reserved amount is booked, and marked
	Cost      Micros // like Price, ignored where Unknown
	Price     Price
	Tokens    Tokens
	Estimated bool
	Receipt   Receipt
}

// Settle is the settlement of an answered call, at the price of its start. Figures no
// call can have are not believed, and make the outcome unknown.
func (h Hold) Settle(tokens Tokens, receipt Receipt) Settlement {
	if !tokens.plausible() {
		unknown := SettleUnknown(h.ID)
		unknown.Receipt = receipt
		return unknown
	}
	return Settlement{
		Hold: h.ID, Cost: h.Price.Cost(tokens), Price: h.Price, Tokens: tokens,
		Estimated: tokens.Estimated || h.Price.Guesses(tokens), Receipt: receipt,
	}
}

// SettleUnknown is the settlement of a call whose outcome nobody knows: it timed out,
// was cut off or was left behind by a crash, and the provider may have billed it. Its
// whole hold is booked, marked as an estimate.
func SettleUnknown(id HoldID) Settlement { return Settlement{Hold: id, Unknown: true, Estimated: true} }

// settlementDocument has the column names of table charges, as ledger_settle wants
// them.
type settlementDocument struct {
	Hold           HoldID  `json:"hold_id"`
	Cost           *Micros `json:"cost_micros"`
	Model          string  `json:"model_billed"`
	Input          int64   `json:"input_tokens"`
	CacheRead      int64   `json:"cache_read_tokens"`
	CacheWrite     int64   `json:"cache_write_tokens"`
	CacheWriteLong int64   `json:"cache_write_long_tokens,omitempty"`
	Output         int64   `json:"output_tokens"`
	Reasoning      int64   `json:"reasoning_tokens"`
	Estimated      bool    `json:"estimated"`
	RequestID      string  `json:"request_id"`
	Finish         string  `json:"finish"`
	LatencyMS      int64   `json:"latency_ms"`
	priceColumns
}

func (s Settlement) document() settlementDocument {
	document := settlementDocument{
		Hold: s.Hold, Model: plainText(s.Receipt.Model), RequestID: plainText(s.Receipt.RequestID),
		Finish: plainText(s.Receipt.Finish), LatencyMS: max(s.Receipt.Latency.Milliseconds(), 0), Estimated: s.Estimated,
	}
	if s.Unknown {
		return document
	}
	document.Cost, document.priceColumns = &s.Cost, s.Price.columns(s.Tokens.read())
	document.Input, document.CacheRead, document.CacheWrite = s.Tokens.Input, s.Tokens.CacheRead, s.Tokens.CacheWrite
	document.CacheWriteLong = s.Tokens.CacheWriteLong
	document.Output, document.Reasoning = s.Tokens.Output, s.Tokens.Reasoning
	return document
}
