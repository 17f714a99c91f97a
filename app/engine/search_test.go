package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// orders is a pipeline whose runs are found by what they are started with and hand back.
func orders() pipeline.Document {
	return pipeline.Document{
		Semantics: pipeline.Semantics, Name: "Orders", Search: []string{"input.order", "result.outcome"},
		Input:  []pipeline.Field{{Name: "order", Label: "Order number", Type: pipeline.TypeText}},
		Steps:  []pipeline.Step{{ID: "end", Name: "End", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "outcome", Formula: `"Paid"`}}}}},
		Result: []pipeline.Value{{Name: "outcome", Formula: "steps.end.outcome"}},
	}
}

func TestRunsAreFoundByTheFieldsOfTheirPipeline(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(string(orders().JSON()))
	first, second := h.start(id, `{"order": "NL-117"}`), h.start(id, `{"order": "nl-1170 %_"}`)
	h.work()
	h.awaitEnd(first)
	h.awaitEnd(second)
	for _, c := range []struct {
		filter engine.Filter
		want   []engine.RunID
	}{
		{engine.Filter{Find: "nl-117"}, []engine.RunID{second, first}},
		{engine.Filter{Find: " NL-117 ", Exact: true}, []engine.RunID{first}},
		{engine.Filter{Find: "nl-1170 %_", Exact: true}, []engine.RunID{second}},
		{engine.Filter{Find: "%"}, nil},
		{engine.Filter{Find: "l-117"}, nil},
		{engine.Filter{Find: "paid", Field: "result.outcome"}, []engine.RunID{second, first}},
		{engine.Filter{Find: "paid", Field: "input.order"}, nil},
		{engine.Filter{Find: "paid", Exact: true, Group: engine.GroupFailed}, nil},
		{engine.Filter{Find: "paid", Exact: true, Pipeline: id, Version: 1, Group: engine.GroupCompleted, Top: true}, []engine.RunID{second, first}},
	} {
		require.Equal(t, c.want, h.listed(c.filter), "%+v", c.filter)
	}
	other, _ := h.db.Tenant(t)
	require.NoError(t, h.db.InTx(t.Context(), other, func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, engine.Filter{Find: "nl"}, engine.RunID{}, 50)
		require.Empty(t, page.Lines, "another workspace finds nothing")
		return err
	}))
}

// Both ways to find runs give the same pages, also where many more runs have the value than
// are looked at for one page.
func TestPagesOfFoundRunsAreWhole(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(string(orders().JSON()))
	model := h.start(id, `{"order": "model"}`)
	h.work()
	h.awaitEnd(model)
	h.exec(fmt.Sprintf(`
		CREATE TEMP TABLE many AS SELECT gen_random_uuid() AS id, n FROM generate_series(1, 12000) n;
		INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, ended_at)
		SELECT r.tenant_id, m.id, r.pipeline_id, 1, m.n + 1, 'Run ' || m.n, CASE WHEN m.n %% 3000 = 0 THEN 'failed' ELSE 'completed' END, r.input_digest, 's' || m.n, now()
		FROM many m, runs r WHERE r.id = '%s';
		INSERT INTO run_search SELECT r.tenant_id, m.id, 'input.order', 'many' FROM many m, runs r WHERE r.id = '%s'`, model, model))
	for _, filter := range []engine.Filter{{Find: "many", Exact: true}, {Find: "man"}} {
		filter.Group = engine.GroupFailed
		var found []engine.RunID
		before, pages := engine.RunID{}, 0
		for more := true; more; pages++ {
			h.in(func(ctx context.Context, tx tenants.Tx) error {
				page, err := engine.ListRuns(ctx, tx, filter, before, 3)
				for _, line := range page.Lines {
					found = append(found, line.Run.ID)
				}
				more, before = page.More, page.Next
				return err
			})
			require.Less(t, pages, 10)
		}
		require.Len(t, found, 4, "%+v", filter)
	}
}

func (h *house) listed(filter engine.Filter) []engine.RunID {
	h.t.Helper()
	var found []engine.RunID
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		page, err := engine.ListRuns(ctx, tx, filter, engine.RunID{}, 50)
		for _, line := range page.Lines {
			found = append(found, line.Run.ID)
		}
		return err
	})
	return found
}
