package web

import (
	"fmt"
	"strings"

	"tollgate/billing/ledger"
	"tollgate/web/ui"
)

// moneyFold tells each call's model, tokens, price and cost.
func (p *panelView) moneyFold() ui.Fold {
	if len(p.Charges) == 0 {
		return ui.Fold{}
	}
	var pairs []ui.Pair
	for i, charge := range p.Charges {
		if len(p.Charges) > 1 {
			pairs = append(pairs, ui.Pair{Label: fmt.Sprintf("Call %d", i+1), Value: ui.When(charge.StartedAt, p.r.Now, p.r.v.zone()), Strong: true})
		}
		pairs = append(pairs, chargePairs(charge)...)
	}
	return ui.Fold{ID: "fold-money", Title: "Model and cost", Answer: ui.Dollars(p.Passage.Step.CostMicros), Body: ui.Pairs{Items: pairs, Tight: true}}
}

// chargePairs show amounts to the last digit: one token often costs less than a cent.
func chargePairs(charge ledger.Charge) []ui.Pair {
	model := charge.Model
	if charge.ModelBilled != "" && charge.ModelBilled != charge.Model {
		model += ", billed as " + charge.ModelBilled
	}
	tokens := charge.Tokens
	pairs := []ui.Pair{
		{Label: "Model", Value: model},
		{Label: "Read", Value: ui.Count(tokens.Input+tokens.CacheRead+tokens.CacheWrite) + " tokens" + atRate(charge.Input)},
		{Label: "Written", Value: ui.Count(tokens.Output+tokens.Reasoning) + " tokens" + atRate(charge.Output)},
		{Label: "Cost", Value: charge.Cost.Exact() + costNote(charge), Strong: true},
		{Label: "Reserved", Value: charge.Reserved.Exact() + givenBack(charge)},
	}
	if charge.Latency > 0 {
		pairs = append(pairs, ui.Pair{Label: "Answered in", Value: ui.Duration(charge.Latency)})
	}
	return pairs
}

// atRate names the price; one that nobody knows is left out rather than shown as zero.
func atRate(rate ledger.Rate) string {
	if micros, known := rate.Micros(); known {
		return ", at " + micros.Exact() + " a million"
	}
	return ""
}

// costNote says whose dollars these are, and whether the provider told them.
func costNote(charge ledger.Charge) string {
	var notes []string
	if charge.Funds == ledger.Pretend {
		notes = append(notes, "pretend dollars")
	}
	if charge.Tokens.Estimated {
		notes = append(notes, "estimated")
	}
	if charge.Payer == ledger.PayerOwn {
		notes = append(notes, "billed by your provider")
	}
	if len(notes) == 0 {
		return ""
	}
	return ", " + strings.Join(notes, ", ")
}

// givenBack closes the account of what was reserved.
func givenBack(charge ledger.Charge) string {
	switch rest := charge.Reserved - charge.Cost; {
	case charge.Overrun > 0:
		return ", passed by " + charge.Overrun.Exact()
	case rest > 0:
		return ", " + rest.Exact() + " given back"
	}
	return ""
}
