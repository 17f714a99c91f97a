package engine

import (
	"context"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// CostPreview is what a run of a version is likely to cost, and from what that is known.
type CostPreview struct {
	Runs   int           // finished runs of the version that it is drawn from, PreviewRuns at most
	About  ledger.Micros // their average
	Most   ledger.Micros // the dearest of them
	RunCap *ledger.Micros
	// Bound is the most that the steps allow together; nil where a step has no limit of its
	// own, or may be done any number of times.
	Bound *ledger.Micros
}

// PreviewRuns is from how many runs a preview is drawn at most.
const PreviewRuns = 12

// PreviewCost tells what a run of a pipeline's version is likely to cost: from its last
// finished runs, and from what its steps and the cap of a run allow at most.
func PreviewCost(ctx context.Context, tx tenants.Tx, of pipeline.Version) (CostPreview, error) {
	var preview CostPreview
	for _, funds := range []ledger.Funds{ledger.Real, ledger.Pretend} {
		spent, err := ledger.PreviewOf(ctx, tx, ledger.PipelineID(of.Pipeline), of.Number, funds, PreviewRuns)
		if err != nil {
			return preview, err
		}
		preview.Runs, preview.About, preview.Most = spent.Runs, preview.About+spent.Average, preview.Most+spent.Most
	}
	if limit := of.Document.RunCap; limit != nil {
		preview.RunCap = (*ledger.Micros)(limit)
	} else {
		settings, err := ledger.SettingsOf(ctx, tx)
		if err != nil {
			return preview, err
		}
		preview.RunCap = settings.RunCap
	}
	// Before rules number 4 a step's limit was that of each of its tries.
	if bound, known := boundOf(of.Program.Roots()); known && of.Document.Semantics >= 4 {
		preview.Bound = &bound
	}
	return preview, nil
}

// boundOf is the most that steps allow together; false where something has no limit.
func boundOf(nodes []*pipeline.Node) (ledger.Micros, bool) {
	var sum ledger.Micros
	for _, node := range nodes {
		most, known := boundOfNode(node)
		if !known {
			return 0, false
		}
		sum += most
	}
	return sum, true
}

func boundOfNode(node *pipeline.Node) (ledger.Micros, bool) {
	switch {
	case node.AI() != nil:
		limit := ledger.Micros(node.AI().MaxCost)
		return limit, limit > 0
	case node.Repeat() != nil:
		return ledger.Micros(node.Repeat().MaxCost), true
	case node.Starts() != nil:
		return 0, false
	}
	var sum ledger.Micros
	for _, list := range node.Lists {
		most, known := boundOf(list.Nodes)
		if !known || most > 0 && node.Kind() == pipeline.KindEach {
			return 0, false
		}
		sum += most
	}
	return sum, true
}
