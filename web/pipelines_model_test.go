package web

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

const terra = "openai/gpt-5.6-terra"

// withModels is a setting for newSite: the practice model, a real one, and one whose
// price nobody knows.
func withModels(config *Config) {
	config.Models = []Model{
		{ID: "practice/standard", Name: "Practice model", Practice: true},
		{ID: terra, Name: "GPT-5.6 Terra"},
		{ID: "openai/house-model", Name: "house-model"},
		{ID: "anthropic/claude-sonnet-5", Name: "Claude Sonnet 5", OwnKeyOnly: true},
	}
}

// emails publishes the template that asks a model, also inside a decision.
func (s *site) emails() pipeline.ID {
	s.t.Helper()
	template, ok := pipeline.TemplateBySlug("customer-email")
	require.True(s.t, ok)
	return s.publish(s.home, template.Document)
}

func (s *site) live(id pipeline.ID) (pipeline.Pipeline, pipeline.Version) {
	s.t.Helper()
	var one pipeline.Pipeline
	var version pipeline.Version
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if one, err = pipeline.ByID(ctx, tx, id); err != nil {
			return err
		}
		version, err = pipeline.VersionByNumber(ctx, tx, id, one.Live)
		return err
	})
	return one, version
}

func (s *site) published(id pipeline.ID) []tenants.Entry {
	s.t.Helper()
	var found []tenants.Entry
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		entries, err := tenants.AuditOf(ctx, tx, tenants.Target{Kind: "pipeline", ID: id}, tenants.AuditID{})
		for _, entry := range entries {
			if entry.Action == "pipeline.published" {
				found = append(found, entry)
			}
		}
		return err
	})
	return found
}

func TestModelIsChangedByAForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	s.calls.say(triaged)
	run := s.sampleRun("customer-email")
	id := run.PipelineID
	b := s.in(tenants.Builder)
	page, form := s.at("pipelines", id.String()), s.at("pipelines", id.String(), "model")
	shown := b.get(page).is(http.StatusOK).says("Its steps ask Practice model .", "Publish with this model", "Runs in progress stay on their version.", "Its price is not known.")
	seen := shown.field("version")
	b.post(form, "model", terra, "version", seen).leadsTo(page)
	one, version := s.live(id)
	require.Equal(t, 2, one.Live)
	require.Equal(t, []string{terra}, version.Document.Models())
	require.Equal(t, []string{terra}, one.Draft.Models())
	require.Equal(t, "Model changed to GPT-5.6 Terra", version.Note)
	require.Equal(t, s.home.people[tenants.Builder].User.ID, version.PublishedBy)
	b.get(page).says("v2", "Its steps ask GPT-5.6 Terra .", "Asks "+terra)
	require.Equal(t, 1, s.runs()[0].Run.Version, "a run stays on its version")

	entries := s.published(id)
	require.Len(t, entries, 1)
	require.Equal(t, tenants.ByMember(s.home.people[tenants.Builder]), entries[0].Actor)

	// Sent again, by anybody's copy of the form, it finds the model in place.
	b.post(form, "model", terra, "version", seen).leadsTo(page)
	b.post(form, "model", terra, "version", "2").leadsTo(page)
	// An old form does not undo what came after it.
	b.post(form, "model", "practice/standard", "version", seen).is(http.StatusConflict).says("Somebody was faster")
	one, _ = s.live(id)
	require.Equal(t, 2, one.Live)
	require.Len(t, s.published(id), 1)

	b.post(form, "model", "practice/standard", "version", "2").leadsTo(page)
	one, version = s.live(id)
	require.Equal(t, 3, one.Live)
	require.Equal(t, []string{"practice/standard"}, version.Document.Models())
}

func TestModelThatCannotBePublishedIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	b := s.in(tenants.Builder)
	form := s.at("pipelines", id.String(), "model")
	for model, says := range map[string]string{
		"":                          "Choose one of the models that are set up here.",
		"openai/gpt-6-astra":        "Choose one of the models that are set up here.",
		"anthropic/claude-sonnet-5": "There is no key to call Claude Sonnet 5 with. An owner or admin can add one",
		"openai/\x00\xff":           "Choose one of the models that are set up here.",
		"openai/house-model":        "The price of house-model is not known, so no cap could be kept. Choose another model.",
		terra + "\n":                "Choose one of the models that are set up here.",
		"practice/standard,../../x": "Choose one of the models that are set up here.",
	} {
		p := b.post(form, "model", model, "version", "1").is(http.StatusUnprocessableEntity).says(says, "There is 1 thing to fix")
		require.Len(t, p.all("a", "href", "#f-model"), 1, "the summary leads to the field")
		require.Contains(t, p.title(), "Error: ")
	}
	b.post(form, "model", terra).is(http.StatusBadRequest).says("This form is not complete")
	one, _ := s.live(id)
	require.Equal(t, 1, one.Live)
	require.Empty(t, s.published(id))
}

// Many presses at once are one version.
func TestModelIsPublishedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	builder := s.in(tenants.Builder)
	var presses sync.WaitGroup
	answers := make([]*page, 6)
	for n := range answers {
		browser := &browser{s: s, cookies: map[string]*http.Cookie{}}
		for name, cookie := range builder.cookies {
			browser.cookies[name] = cookie
		}
		presses.Go(func() {
			answers[n] = browser.post(s.at("pipelines", id.String(), "model"), "model", terra, "version", "1")
		})
	}
	presses.Wait()
	for _, answer := range answers {
		answer.leadsTo(s.at("pipelines", id.String()))
	}
	one, _ := s.live(id)
	require.Equal(t, 2, one.Live)
	require.Len(t, s.published(id), 1)
}

func TestModelIsShownToEverybodyAndChosenByWhoBuilds(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	for _, role := range tenants.Roles() {
		p := s.in(role).get(s.at("pipelines", id.String())).is(http.StatusOK).says("Its steps ask Practice model .")
		want := 0
		if role.May(tenants.BuildPipelines) {
			want = 1
		}
		require.Len(t, p.all("", "data-testid", "change-model"), want, role)
	}
	asking := s.publish(s.home, askingDocument("No model"))
	s.in(tenants.Builder).get(s.at("pipelines", asking.String())).is(http.StatusOK).hides("change-model", "Its steps ask")
	s.in(tenants.Builder).post(s.at("pipelines", asking.String(), "model"), "model", terra, "version", "1").is(http.StatusSeeOther)
	one, _ := s.live(asking)
	require.Equal(t, 1, one.Live, "where nothing asks, nothing changes")
}

func TestARealModelIsExplainedWhereThereIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels, func(c *Config) { c.Models = c.Models[:1] })
	id := s.emails()
	hint := "This installation has the practice model only."
	s.in(tenants.Builder).get(s.at("pipelines", id.String())).is(http.StatusOK).says(hint).hides("change-model")
	s.in(tenants.Viewer).get(s.at("pipelines", id.String())).is(http.StatusOK).hides(hint)
	template, _ := pipeline.TemplateBySlug("customer-email")
	real := s.publish(s.home, template.Document.WithModel(terra))
	s.in(tenants.Viewer).get(s.at("pipelines", real.String())).is(http.StatusOK).says(terra + " (not set up here)")
}

func TestModelOfAnUnpublishedPipelineIsNotChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	var id pipeline.ID
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		id, err = pipeline.Create(ctx, tx, askDocument("Draft"), "", s.home.people[tenants.Builder].User.ID)
		return err
	})
	b := s.in(tenants.Builder)
	b.get(s.at("pipelines", id.String())).is(http.StatusOK).hides("change-model")
	b.post(s.at("pipelines", id.String(), "model"), "model", terra, "version", "0").is(http.StatusConflict).says("not published yet")
}
