package web

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// groupsDocument has one of each kind of group: a vote, a loop, and a list whose odd
// rows go to a person.
func groupsDocument() pipeline.Document {
	const text = `{"semantics": 2, "name": "Storm Ylva: claims", "run_name": "{{ input.topic }}",
	"input": [{"name": "topic", "label": "Topic", "type": "text", "required": true}],
	"steps": [
		{"id": "vote", "name": "Three models say what kind of damage it is", "kind": "parallel", "with": {"combine": "majority", "branches": [
			{"id": "fast", "name": "Fast model", "steps": [{"id": "fast_says", "name": "Say the kind", "kind": "set", "with": {"values": [{"name": "kind", "formula": "'water'"}]}}]},
			{"id": "careful", "name": "Careful model", "steps": [{"id": "careful_says", "name": "Say the kind, with reasons", "kind": "set", "with": {"values": [{"name": "kind", "formula": "'water'"}]}}]},
			{"id": "other", "name": "Model of another house with a very long name that does not fit on one line", "steps": [{"id": "other_says", "name": "Say the kind", "kind": "set", "with": {"values": [{"name": "kind", "formula": "'hail'"}]}}]}]}},
		{"id": "polish", "name": "Write the letter until it is good", "kind": "repeat", "with": {"until": "steps.grade.score >= 8", "max_rounds": 5, "max_cost": 500000, "max_time": "20m", "at_limit": "best", "score": "steps.grade.score", "steps": [
			{"id": "write", "name": "Write", "kind": "set", "with": {"values": [{"name": "text", "formula": "'Dear'"}]}},
			{"id": "grade", "name": "Grade", "kind": "set", "with": {"values": [{"name": "score", "formula": "7.5"}]}}]}},
		{"id": "claims", "name": "Check each claim", "kind": "each", "with": {"items": "[1, 2]", "at_once": 4, "max_failed": 5000, "steps": [
			{"id": "read", "name": "Read the claim", "kind": "set", "with": {"values": [{"name": "x", "formula": "item"}]}},
			{"id": "odd", "name": "Is it odd?", "kind": "branch", "with": {"cases": [{"id": "yes", "name": "Over €5,000", "when": "item > 1", "steps": [
				{"id": "ask", "name": "Ask the claims lead", "kind": "review", "with": {"question": "Pay this claim?", "people": [{"role": "reviewer"}]}}]}]}}]}},
		{"id": "sum", "name": "Sum it up", "kind": "set", "with": {"values": [{"name": "y", "formula": "1"}]}}]}`
	document, err := pipeline.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return document
}

// groupRows are the rows of one run, written as a worker would have left them.
type groupRows struct {
	s     *site
	run   engine.RunID
	began time.Time
	batch *pgx.Batch
}

// row writes one row and gives its id. more sets further columns.
func (g *groupRows) row(parent engine.StepRunID, step, kind, list string, turn int, state string, more map[string]any) engine.StepRunID {
	id := tenants.NewID[engine.StepRun]()
	if next := g.began.Add(2 * time.Second); next.Before(time.Now()) {
		g.began = next
	}
	var ended any
	if state == "done" || state == "failed" || state == "cancelled" {
		ended = g.began.Add(2 * time.Second)
	}
	columns := map[string]any{"chosen": "", "score": "", "failure": nil, "output": nil, "input": nil}
	for name, value := range more {
		columns[name] = value
	}
	g.batch.Queue(`INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, turn, state, created_at, begun_at, ended_at, chosen, score, failure, output_digest, input_digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, $13, $14, $15, $16)`,
		g.s.home.ID, id, g.run, parent, step, kind, list, turn, state, g.began, ended, columns["chosen"], columns["score"], columns["failure"], columns["output"], columns["input"])
	return id
}

// value stores a value and gives its digest.
func (g *groupRows) value(content string) []byte {
	digest := engine.DigestOf([]byte(content))
	g.batch.Queue(`INSERT INTO stored_values (tenant_id, digest, size, media_type, content) VALUES ($1, $2, $3, 'application/json', $4) ON CONFLICT DO NOTHING`,
		g.s.home.ID, digest[:], len(content), []byte(content))
	g.batch.Queue(`INSERT INTO run_values (tenant_id, digest, run_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, g.s.home.ID, digest[:], g.run)
	return digest[:]
}

func (g *groupRows) write() {
	g.s.t.Helper()
	require.NoError(g.s.t, g.s.db.Super(g.s.t).SendBatch(g.s.t.Context(), g.batch).Close())
}

func (s *site) beginRows(run engine.RunID) *groupRows {
	s.t.Helper()
	super := s.db.Super(s.t)
	for _, sql := range []string{`DELETE FROM slices WHERE run_id = $1`, `UPDATE runs SET created_at = created_at - interval '30 minutes' WHERE id = $1`} {
		_, err := super.Exec(s.t.Context(), sql, run)
		require.NoError(s.t, err)
	}
	return &groupRows{s: s, run: run, began: time.Now().Add(-29 * time.Minute), batch: &pgx.Batch{}}
}

// groupsRun is a run that has voted and looped, and works through n claims: half are
// done, a tenth failed, a tenth wait for a person, a tenth work, the rest has not begun.
func (s *site) groupsRun(topic string, n int) engine.RunID {
	s.t.Helper()
	run := s.start(s.home, s.publish(s.home, groupsDocument()), map[string]string{"topic": topic}).ID
	g := s.beginRows(run)
	vote := g.row(engine.StepRunID{}, "vote", "parallel", "", 0, "done", map[string]any{
		"output": g.value(`{"results":{"fast":{"kind":"water"},"careful":{"kind":"water"},"other":{"kind":"hail"}},"combined":{"kind":"water"}}`)})
	for i, lane := range []string{"fast", "careful", "other"} {
		kind := map[string]string{"fast": "water", "careful": "water", "other": "hail"}[lane]
		row := g.row(vote, "vote", "lane", lane, i, "done", map[string]any{"output": g.value(`{"kind":"` + kind + `"}`)})
		g.row(row, lane+"_says", "set", lane, 0, "done", nil)
	}
	loop := g.row(engine.StepRunID{}, "polish", "repeat", "", 0, "done", map[string]any{"chosen": "2", "score": "8.5",
		"output": g.value(`{"rounds":3,"reason":"until","best":{"score":8.5}}`)})
	for i, score := range []string{"5", "7.5", "8.5"} {
		round := g.row(loop, "polish", "round", "steps", i, "done", map[string]any{"score": score})
		g.row(round, "write", "set", "steps", 0, "done", nil)
		g.row(round, "grade", "set", "steps", 0, "done", nil)
	}
	g.claims(n)
	g.write()
	return run
}

// claims writes the list and its items.
func (g *groupRows) claims(n int) {
	list := g.row(engine.StepRunID{}, "claims", "each", "", 0, "running", nil)
	states := []string{"done", "done", "done", "done", "done", "failed", "running", "running", "queued", "queued"}
	names := []string{"Malerbetrieb Schön", "عبد الرحمن القحطاني", "Spedition Hagenbeck-Oltmanns GmbH & Co. KG, Niederlassung Wedel", "🏠 Haus am See", hostile}
	for i := range n {
		state := states[i%10]
		item := map[string]any{"input": g.value(fmt.Sprintf(`{"claim":"NL-2026-%05d","customer":%q,"amount":{"amount":%d.50,"currency":"EUR"},"note":"Roof"}`, i+1, names[i%len(names)], 100+i))}
		if state == "failed" {
			failure, _ := json.Marshal(engine.Failure{Class: "x", Message: []string{"The address is missing. Fill it in.", "The photo cannot be read. Ask for another."}[i/10%2]})
			item["failure"] = failure
		}
		row := g.row(list, "claims", "item", "steps", i, state, item)
		switch i % 10 {
		case 6:
			g.row(row, "read", "set", "steps", 0, "done", nil)
			odd := g.row(row, "odd", "branch", "steps", 0, "running", map[string]any{"chosen": "yes"})
			ask := g.row(odd, "ask", "review", "yes", 0, "waiting", nil)
			g.batch.Queue(`INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind) VALUES ($1, gen_random_uuid(), $2, $3, 'review')`, g.s.home.ID, g.run, ask)
		case 7:
			g.row(row, "read", "set", "steps", 0, "running", nil)
			g.batch.Queue(`INSERT INTO slices (tenant_id, id, run_id, step_run_id, state, semantics, window_id) VALUES ($1, gen_random_uuid(), $2, $3, 'running', 1, $4)`,
				g.s.home.ID, g.run, row, list)
		case 8, 9:
		default:
			g.row(row, "read", "set", "steps", 0, "done", nil)
		}
	}
}
