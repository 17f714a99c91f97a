package web

import (
	"context"
	"strconv"

	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// usageCSV hands out a month's usage, one line for each day, pipeline,
// model, member, key and cost centre.
// Amounts are in dollars to the last digit.
func (s *Server) usageCSV(v *visit) error {
	view := usageView{v: v}
	var details []ledger.UsageDetail
	err := v.inTx(func(ctx context.Context, tx tenants.Tx) error {
		if err := view.read(ctx, tx); err != nil {
			return err
		}
		var err error
		details, err = ledger.UsageDetails(ctx, tx, view.Month, view.Funds)
		return err
	})
	if err != nil {
		return err
	}
	records := [][]string{{"Day", "Pipeline", "Model", "Started by", "Key", "Cost centre", "Paid by", "Dollars", "Calls", "Estimated calls", "Tokens in", "Tokens out", "Cost in USD"}}
	for _, line := range details {
		records = append(records, []string{
			line.Day, view.names.of(ledger.ByPipeline, line.Pipeline), line.Model, view.names.of(ledger.ByMember, line.Member),
			view.names.of(ledger.ByKey, line.Key), line.CostCentre,
			payerWords[line.Payer], string(view.Funds), strconv.FormatInt(line.Calls, 10), strconv.FormatInt(line.Estimated, 10),
			strconv.FormatInt(line.Input, 10), strconv.FormatInt(line.Output, 10), line.Cost.Plain(),
		})
	}
	return v.csvFile("usage-"+view.Month.From.In(v.workspaceZone()).Format(monthForm), records)
}

// payerWords say whose key paid.
var payerWords = map[ledger.Payer]string{ledger.PayerOwn: "your key", ledger.PayerPlatform: "our key"}
