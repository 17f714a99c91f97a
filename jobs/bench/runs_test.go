package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// line is a pipeline of so many steps, one after the other. Each is given what the one
// before it answered, so that every input differs.
func line(kind pipeline.Kind, steps int) pipeline.Document {
	document := pipeline.Document{Semantics: pipeline.Semantics, Name: fmt.Sprintf("%d times %s", steps, kind)}
	text := "{{ run.id }}"
	for n := range steps {
		id := fmt.Sprintf("s%d", n)
		step := pipeline.Step{ID: id, Name: fmt.Sprintf("Step %d", n), Kind: kind}
		switch kind {
		case pipeline.KindAI: // through the ledger
			step.With = &pipeline.AI{Models: []string{"practice/standard"}, Instructions: "Answer.", Prompt: text, MaxTokens: 100}
			text = "{{ steps." + id + ".text }}"
		default: // costs nothing
			step.With = &pipeline.Email{To: []string{"someone@example.com"}, Subject: step.Name, Body: text}
			text = "{{ steps." + id + ".message_id }}"
		}
		document.Steps = append(document.Steps, step)
	}
	return document
}

// loop goes through ten steps again and again, so many times.
func loop(rounds int) pipeline.Document {
	document := line(pipeline.KindEmail, stepsOfRun)
	document.Name = fmt.Sprintf("%d rounds", rounds)
	document.Steps = []pipeline.Step{{ID: "again", Name: "Again", Kind: pipeline.KindRepeat, With: &pipeline.Repeat{
		Steps: document.Steps, Until: "false", MaxRounds: rounds, MaxCost: 1_000_000,
		MaxTime: pipeline.Duration(time.Hour), Score: "round", AtLimit: pipeline.LimitBest,
	}}}
	return document
}

// publish stores a document and makes it live.
func (h *house) publish(t *testing.T, document pipeline.Document) pipeline.ID {
	t.Helper()
	var id pipeline.ID
	require.NoError(t, h.db.InTx(t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if id, err = pipeline.Create(ctx, tx, document, "", h.owner); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", h.owner)
		return err
	}))
	return id
}

// run starts runs of a pipeline with so many steps and waits for the last commit.
func (h *house) run(t *testing.T, id pipeline.ID, runs, steps int) took {
	t.Helper()
	return h.clock.time(t, work{
		runs: runs, steps: steps,
		start: func(ctx context.Context, name string) error { return h.start(ctx, id, name) },
		open: func(ctx context.Context) (open int, err error) {
			err = h.db.InTx(ctx, h.tenant, func(ctx context.Context, tx tenants.Tx) error {
				return tx.QueryRow(ctx, `SELECT count(*) FROM runs WHERE ended_at IS NULL`).Scan(&open)
			})
			return open, err
		},
	})
}

// start begins one run under a name of its own, as a form does.
func (h *house) start(ctx context.Context, id pipeline.ID, name string) error {
	_, err := h.engine.StartNow(ctx, h.tenant, engine.StartRequest{
		Pipeline: id, Input: []byte(`{}`), By: h.owner, Key: id.String() + name, Actor: tenants.BySystem("the benchmark"),
	})
	return err
}
