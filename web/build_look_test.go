package web

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// drafted makes a live pipeline of a template whose draft has been changed.
func (s *site) drafted(slug string, change func(pipeline.Document) pipeline.Document) pipeline.ID {
	s.t.Helper()
	template, ok := pipeline.TemplateBySlug(slug)
	require.True(s.t, ok)
	id := s.publish(s.home, template.Document)
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		return pipeline.SaveDraft(ctx, tx, id, change(template.Document), s.home.people[tenants.Builder].User.ID)
	})
	return id
}

// busyDraft is a draft with something of everything: what blocks, what warns, a step that
// is off, a hostile name.
func busyDraft(t testing.TB) func(pipeline.Document) pipeline.Document {
	return func(d pipeline.Document) pipeline.Document {
		d, _, err := d.WithStep(pipeline.Place{Index: 1}, pipeline.KindRepeat, "")
		require.NoError(t, err)
		d, _, err = d.WithStep(pipeline.Place{Parent: "repeat_until", List: pipeline.ListSteps}, pipeline.KindAI, "practice/standard")
		require.NoError(t, err)
		d, err = d.WithChanged("ask_ai", func(s *pipeline.Step) error { s.Name = hostile + strings.Repeat(" wide", 20); return nil })
		require.NoError(t, err)
		d, id, err := d.WithCopy("ask_ai")
		require.NoError(t, err)
		d, err = d.WithSwitched(id, true)
		require.NoError(t, err)
		return d
	}
}

// Every page of the builder passes the checks of a browser and of axe on a phone and on a
// desk, light and dark.
func TestTheLookOfTheBuilder(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	withModels(&s.web.Config)
	id := s.drafted("invoice-check", busyDraft(t))
	kinds := s.drafted("invoice-check", everyKind(t))
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Builder)
			look := func(name string, id pipeline.ID, parts ...string) {
				p.Go(s.web.origin + s.at(append([]string{"pipelines", id.String(), "draft"}, parts...)...))
				p.Shot(name)
				p.Check(t)
			}
			look("builder", id)
			look("builder-ai", id, "steps", "read")
			look("builder-add", id, "add")
			look("builder-move", id, "steps", "ask_ai", "move")
			look("builder-changes", id, "changes")
			look("builder-text", id, "text")
			look("builder-publish", kinds, "publish")
			for _, kind := range pipeline.Kinds() {
				look("builder-kind-"+string(kind), kinds, "steps", "k_"+string(kind))
			}
		})
	}
}

// everyKind puts a step of each kind into a draft.
func everyKind(t testing.TB) func(pipeline.Document) pipeline.Document {
	return func(d pipeline.Document) pipeline.Document {
		for _, kind := range pipeline.Kinds() {
			var id string
			var err error
			d, id, err = d.WithStep(pipeline.Place{Index: len(d.Steps)}, kind, "practice/standard")
			require.NoError(t, err)
			d, err = d.WithChanged(id, func(s *pipeline.Step) error { s.ID = "k_" + string(kind); return nil })
			require.NoError(t, err)
		}
		return d
	}
}
