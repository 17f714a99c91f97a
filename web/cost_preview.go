package web

import (
	"context"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/ui"
)

// moneyOf is what the workspace's prices and rules mean for a document of its.
func moneyOf(ctx context.Context, tx tenants.Tx) (pipeline.Money, error) {
	priced, err := engine.Priced(ctx, tx)
	if err != nil {
		return pipeline.Money{}, err
	}
	rules, err := ledger.SettingsOf(ctx, tx)
	return pipeline.Money{Priced: priced, RunCap: (*int64)(rules.RunCap), Words: ui.Dollars}, err
}

// previewWords say what a run is likely to cost, and from what that is known; nothing for
// who may not see money, and for pipelines that ask no model.
func (v *visit) previewWords(preview engine.CostPreview, asksModels bool) string {
	if !v.maySeeMoney() || !asksModels {
		return ""
	}
	words := "No run of this version has ended yet, so what one costs is not known."
	switch {
	case preview.Runs == 1:
		words = "The one run of this version that has ended cost " + ui.Dollars(int64(preview.About)) + "."
	case preview.Runs > 1:
		words = "A run costs about " + ui.Dollars(int64(preview.About)) + ", from the last " + ui.Plural(int64(preview.Runs), "run", "runs") +
			" of this version; the dearest of them cost " + ui.Dollars(int64(preview.Most)) + "."
	}
	limit, bound := preview.RunCap, preview.Bound
	switch {
	case bound != nil && (limit == nil || *bound <= *limit):
		words += " At most " + ui.Dollars(int64(*bound)) + ": more its steps do not allow."
	case limit != nil:
		words += " At most " + ui.Dollars(int64(*limit)) + ", the cap of a run: there it stops."
	default:
		words += " There is no cap of a run; those of the pipeline and the workspace hold."
	}
	return words
}
