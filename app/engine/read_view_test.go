package engine_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// manyItems checks each number of a list, by a model and where it is odd by a person.
const manyItems = `{"semantics": 2, "name": "Many", "input": [{"name": "n", "type": "number"}], "steps": [
	{"id": "check", "name": "Check", "kind": "each", "with": {"items": "[1, 2]", "at_once": 5, "max_failed": 500, "steps": [
		{"id": "look", "name": "Look", "kind": "set", "with": {"values": [{"name": "x", "formula": "item"}]}},
		{"id": "odd", "name": "Odd?", "kind": "branch", "with": {"cases": [{"id": "yes", "name": "Yes", "when": "item > 1", "steps": [
			{"id": "ask", "name": "Ask", "kind": "review", "with": {"question": "Fine?", "people": [{"role": "owner"}]}}]}]}}]}},
	{"id": "after", "name": "After", "kind": "set", "with": {"values": [{"name": "y", "formula": "1"}]}}]}`

// fillItems puts the run where half of n items are done, a tenth failed for one of two
// reasons, a tenth wait for a person inside a decision, a tenth work, and the rest has
// not begun.
func (h *house) fillItems(run engine.RunID, n int) {
	h.t.Helper()
	_, err := h.db.Super(h.t).Exec(h.t.Context(), `
		WITH rows AS (SELECT tenant_id, id AS run FROM runs WHERE id = @run),
		list AS (
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state) SELECT tenant_id, gen_random_uuid(), run, 'check', 'each', 'running' FROM rows
			RETURNING *
		), items AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, failure, ended_at, input_digest)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'check', 'item', 'steps', i, s.state,
				CASE s.state WHEN 'failed' THEN jsonb_build_object('class', 'x', 'message', CASE i % 3 WHEN 0 THEN 'Address missing.' ELSE 'No answer.' END) END,
				CASE WHEN s.state IN ('done', 'failed') THEN now() END, sha256(convert_to(i::text, 'UTF8'))
			FROM list, generate_series(0, @n - 1) i, LATERAL (SELECT (ARRAY['done', 'done', 'done', 'done', 'done', 'failed', 'running', 'running', 'queued', 'queued'])[i % 10 + 1] AS state) s
			RETURNING *
		), looks AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, ended_at)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'look', 'set', 'steps', CASE turn % 10 WHEN 7 THEN 'running' ELSE 'done' END, CASE turn % 10 WHEN 7 THEN NULL ELSE now() END
			FROM items WHERE state <> 'queued'
		), odds AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, chosen)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'odd', 'branch', 'steps', 'running', 'yes' FROM items WHERE turn % 10 = 6
			RETURNING *
		), asks AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, cost_micros)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'ask', 'review', 'yes', 'waiting', 700 FROM odds
			RETURNING *
		), values AS (
			INSERT INTO stored_values (tenant_id, digest, size, media_type, content)
			SELECT tenant_id, input_digest, 1, 'application/json', convert_to(turn::text, 'UTF8') FROM items ON CONFLICT DO NOTHING
		)
		INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind) SELECT tenant_id, gen_random_uuid(), run_id, id, 'review' FROM asks`,
		pgx.NamedArgs{"run": run, "n": n})
	require.NoError(h.t, err)
}

func (h *house) view(run engine.RunID, part engine.StepRunID) engine.View {
	h.t.Helper()
	var v engine.View
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		v, err = engine.ViewOf(ctx, tx, run, part)
		return err
	})
	return v
}

func (h *house) group(run engine.RunID, group engine.StepRunID, filter engine.PartFilter) engine.GroupView {
	h.t.Helper()
	var g engine.GroupView
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		g, err = engine.GroupOf(ctx, tx, run, group, filter)
		return err
	})
	return g
}

// However many items a list has, its run is a few rows, with counts, a strip, and why
// some failed.
func TestViewGivesAListAsCounts(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(manyItems), `{"n": 1}`)
	h.fillItems(run, 1000)
	v := h.view(run, engine.StepRunID{})
	require.Len(t, v.Steps, 1, "the list itself")
	size := v.Groups[v.Steps[0].ID]
	require.Equal(t, 1000, size.Parts)
	require.Equal(t, map[engine.StandingState]int{
		engine.StandingCompleted: 500, engine.StandingFailed: 100, engine.StandingPerson: 100, engine.StandingRunning: 100, engine.StandingQueued: 200,
	}, size.By)
	require.Len(t, size.Strip, engine.StripCells)
	require.NotContains(t, size.Strip, engine.StandingCompleted, "in every cell is a failure, which is worse")
	require.Equal(t, []engine.Cause{{Message: "No answer.", Parts: 67}, {Message: "Address missing.", Parts: 33}}, size.Causes)
	require.Equal(t, 100, v.Open.Person)
	require.Equal(t, 1, v.Open.Ready, "the slice of the start")
	require.Equal(t, 101, v.Open.Count())
}

// A short list has a cell for each item.
func TestStripOfAShortList(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(manyItems), `{"n": 1}`)
	h.fillItems(run, 8)
	v := h.view(run, engine.StepRunID{})
	done := engine.StandingCompleted
	require.Equal(t, []engine.StandingState{done, done, done, done, done, engine.StandingFailed, engine.StandingPerson, engine.StandingRunning}, v.Groups[v.Steps[0].ID].Strip)
}

// The parts of a group come page by page, each with where it is; a part is looked at
// like a run of its own.
func TestPartsOfAGroup(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(manyItems), `{"n": 1}`)
	h.fillItems(run, 100)
	list := h.view(run, engine.StepRunID{}).Steps[0].ID
	var turns []int
	from := 0
	for {
		g := h.group(run, list, engine.PartFilter{Standing: engine.StandingPerson, From: from, Limit: 4})
		require.LessOrEqual(t, len(g.Parts), 4)
		for _, part := range g.Parts {
			turns = append(turns, part.Part.Turn)
			require.Equal(t, engine.StandingPerson, part.Standing)
			require.Equal(t, "ask", part.At.StepID)
			require.EqualValues(t, 700, part.Part.CostMicros, "of the step inside the decision")
			require.Equal(t, engine.WaitReview, part.Wait.Kind)
			from = part.Part.Turn + 1
		}
		if !g.More {
			break
		}
	}
	require.Equal(t, []int{6, 16, 26, 36, 46, 56, 66, 76, 86, 96}, turns)
	all := h.group(run, list, engine.PartFilter{From: 10, Limit: 10})
	require.Len(t, all.Parts, 10)
	require.True(t, all.More)
	require.Equal(t, "10", string(all.Parts[0].Value))
	require.Nil(t, all.Parts[0].At, "it has ended")
	require.Equal(t, "look", all.Parts[7].At.StepID)
	require.Empty(t, h.group(run, list, engine.PartFilter{Standing: engine.StandingCapped, Limit: 10}).Parts)

	asked := all.Parts[6].Part
	inside := h.view(run, asked.ID)
	require.Equal(t, asked.ID, inside.Part.ID)
	require.Len(t, inside.Around, 1)
	require.Equal(t, list, inside.Around[0].ID)
	require.ElementsMatch(t, []string{"look", "odd", "ask"}, []string{inside.Steps[0].StepID, inside.Steps[1].StepID, inside.Steps[2].StepID})
	require.Len(t, inside.Waits, 1)
	require.EqualValues(t, 700, inside.Part.CostMicros)
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		for step := range inside.Waits {
			place, err := engine.PlaceOf(ctx, tx, run, step)
			require.NoError(t, err)
			require.Equal(t, asked.ID, place)
		}
		place, err := engine.PlaceOf(ctx, tx, run, list)
		require.NoError(t, err)
		require.True(t, place.IsZero())
		return nil
	})
}

// What is no part, or belongs to another run, is not found.
func TestPartsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	id := h.publish(manyItems)
	run, other := h.start(id, `{"n": 1}`), h.start(id, `{"n": 1}`)
	h.fillItems(run, 10)
	list := h.view(run, engine.StepRunID{}).Steps[0].ID
	item := h.group(run, list, engine.PartFilter{Limit: 1}).Parts[0].Part.ID
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		for _, try := range []struct {
			run  engine.RunID
			part engine.StepRunID
		}{{other, item}, {run, list}, {run, tenants.NewID[engine.StepRun]()}} {
			_, err := engine.ViewOf(ctx, tx, try.run, try.part)
			require.ErrorIs(t, err, engine.ErrNoPart)
		}
		for _, try := range []struct {
			run   engine.RunID
			group engine.StepRunID
		}{{other, list}, {run, item}, {run, tenants.NewID[engine.StepRun]()}} {
			_, err := engine.GroupOf(ctx, tx, try.run, try.group, engine.PartFilter{Limit: 1})
			require.ErrorIs(t, err, engine.ErrNoPart)
		}
		_, err := engine.PlaceOf(ctx, tx, other, item)
		require.ErrorIs(t, err, engine.ErrNoPart)
		return nil
	})
}

// Of a loop's rounds the first, the best and the last are shown, and only the newest
// with its steps; branches side by side are shown whole.
func TestViewShowsFewRounds(t *testing.T) {
	t.Parallel()
	h := build(t, nil)
	run := h.start(h.publish(`{"semantics": 2, "name": "Loops", "input": [{"name": "n", "type": "number"}], "steps": [
		{"id": "both", "name": "Both", "kind": "parallel", "with": {"branches": [
			{"id": "left", "name": "Left", "steps": [
				{"id": "again", "name": "Again", "kind": "repeat", "with": {"until": "steps.try.x > 5", "max_rounds": 20, "max_cost": 1000, "max_time": "1h", "at_limit": "best", "score": "steps.try.x", "steps": [
					{"id": "try", "name": "Try", "kind": "set", "with": {"values": [{"name": "x", "formula": "round"}]}}]}}]},
			{"id": "right", "name": "Right", "steps": [{"id": "other", "name": "Other", "kind": "set", "with": {"values": [{"name": "x", "formula": "1"}]}}]}]}}]}`), `{"n": 1}`)
	_, err := h.db.Super(t).Exec(t.Context(), `
		WITH twins AS (
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state) SELECT tenant_id, gen_random_uuid(), id, 'both', 'parallel', 'running' FROM runs WHERE id = @run RETURNING *
		), lanes AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'both', 'lane', (ARRAY['left', 'right'])[i + 1], i, 'running' FROM twins, generate_series(0, 1) i RETURNING *
		), inside AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, chosen, score)
			SELECT tenant_id, gen_random_uuid(), run_id, id, CASE list WHEN 'left' THEN 'again' ELSE 'other' END, CASE list WHEN 'left' THEN 'repeat' ELSE 'set' END, list, 'running',
				CASE list WHEN 'left' THEN '3' ELSE '' END, '7.5' FROM lanes RETURNING *
		), rounds AS (
			INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, ended_at)
			SELECT tenant_id, gen_random_uuid(), run_id, id, 'again', 'round', 'steps', i, CASE i WHEN 11 THEN 'running' ELSE 'done' END, CASE i WHEN 11 THEN NULL ELSE now() END
			FROM inside, generate_series(0, 11) i WHERE kind = 'repeat' RETURNING *
		)
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'try', 'set', 'steps', 'running' FROM rounds`, pgx.NamedArgs{"run": run})
	require.NoError(t, err)
	v := h.view(run, engine.StepRunID{})
	rounds, tries := []int{}, 0
	for _, step := range v.Steps {
		switch step.Kind {
		case engine.KindRound:
			rounds = append(rounds, step.Turn)
		case "set":
			if step.StepID == "try" {
				tries++
			}
		case "repeat":
			require.Equal(t, "7.5", step.Score)
		}
	}
	require.ElementsMatch(t, []int{0, 3, 9, 10, 11}, rounds)
	require.Equal(t, 1, tries, "only the newest round is open")
	require.Len(t, v.Steps, 1+2+2+5+1)
}
