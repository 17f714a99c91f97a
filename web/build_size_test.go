package web

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// long is a draft with as many steps as there may be, most of them reading one before.
func long() pipeline.Document {
	d := pipeline.Document{Semantics: pipeline.Semantics, Name: "Long", Input: []pipeline.Field{{Name: "topic", Type: pipeline.TypeText, Required: true}}}
	for i := range pipeline.MaxSteps {
		step := pipeline.Step{ID: fmt.Sprintf("s%d", i), Name: fmt.Sprintf("Step with the number %d", i), Kind: pipeline.KindSet,
			With: &pipeline.Set{Values: []pipeline.Value{{Name: "v", Formula: "input.topic"}}}}
		if i > 0 && i%2 == 0 {
			step.Kind = pipeline.KindAI
			step.With = &pipeline.AI{Models: []string{"practice/standard"}, Instructions: "Do it.", Prompt: fmt.Sprintf("{{ steps.s%d.v }}", i-1)}
		}
		d.Steps = append(d.Steps, step)
	}
	return d
}

// A pipeline of a thousand steps opens within a second, and an edit of it is saved within
// 300 ms: the middle of several, on a machine that does other things besides.
func TestALongPipelineIsEditedQuickly(t *testing.T) {
	s := newSite(t, withModels)
	var id pipeline.ID
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) (err error) {
		id, err = pipeline.Create(ctx, tx, long(), "", s.home.people[tenants.Builder].User.ID)
		return err
	})
	b := s.in(tenants.Builder)
	var opens, saves, whole []time.Duration
	for i := range 5 {
		began := time.Now()
		p := b.get(s.draftAt(id, "steps", "s998")).is(http.StatusOK)
		opens = append(opens, time.Since(began))
		form := p.formOf("save-step").set("with.prompt", fmt.Sprintf("Turn %d", i))
		began = time.Now()
		form.send().is(http.StatusSeeOther)
		saves = append(saves, time.Since(began))
		began = time.Now()
		require.Less(t, len(b.get(s.draftAt(id)).is(http.StatusOK).body), 1<<20)
		whole = append(whole, time.Since(began))
	}
	t.Logf("1,000 steps: a step opens in %v, the whole in %v, an edit is saved in %v", opens, whole, saves)
	require.Less(t, middle(opens), time.Second)
	require.Less(t, middle(whole), time.Second)
	require.Less(t, middle(saves), 300*time.Millisecond)
}

func middle(all []time.Duration) time.Duration {
	for i := range all {
		for k := i; k > 0 && all[k] < all[k-1]; k-- {
			all[k], all[k-1] = all[k-1], all[k]
		}
	}
	return all[len(all)/2]
}
