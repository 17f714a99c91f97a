package web

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// draftStep reads a step of a draft.
func (s *site) draftStep(id pipeline.ID, step string) (*pipeline.Step, pipeline.Place, bool) {
	s.t.Helper()
	draft := s.draft(id).Draft
	return draft.StepAt(step)
}

// add puts a step of a kind at a place and gives the page of its form.
func (b *browser) add(id pipeline.ID, in, list, place string, kind pipeline.Kind) *page {
	b.s.t.Helper()
	query := url.Values{"in": {in}, "list": {list}, "place": {place}}
	form := b.get(b.s.draftAt(id, "add") + "?" + query.Encode()).is(http.StatusOK).formOf("add-" + string(kind))
	return form.send().follow().is(http.StatusOK)
}

// fresh makes an empty pipeline by its form.
func (b *browser) fresh(name string) pipeline.ID {
	b.s.t.Helper()
	led := b.get(b.s.at("pipelines", "new")).is(http.StatusOK).formOf("new-pipeline").set("name", name).send().is(http.StatusSeeOther)
	parts := strings.Split(led.header.Get("Location"), "/")
	id, err := tenants.ParseID[pipeline.Pipeline](parts[len(parts)-2])
	require.NoError(b.s.t, err)
	return id
}

// A pipeline is built from nothing by forms alone, without a script: a start form, a
// decision, a loop and a review; it is published and runs.
func TestAPipelineIsBuiltFromNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := b.fresh("Sort the mail")

	p := b.get(s.draftAt(id)).is(http.StatusOK).says("not published yet", "Add your first step")
	p = p.formOf("save-settings").set("do", "more:input").send().follow()
	p = p.formOf("save-settings").set("input[0].label", "Amount", "input[0].type", "number").send().follow()
	p.formOf("save-settings").set("run_name", "Mail [Input › Amount]").send().is(http.StatusSeeOther)

	p = b.add(id, "", "", "0", pipeline.KindAI)
	p.formOf("save-step").set("name", "Read it", "with.instructions", "Read it.", "with.prompt", "Amount: [Input › Amount]").send().is(http.StatusSeeOther)
	p = b.get(s.draftAt(id, "steps", "ask_ai")).formOf("save-step").set("do", "more:with.answer").send().follow()
	p.formOf("save-step").set("with.answer[0].label", "Kind of mail", "with.answer[0].type", "text").send().is(http.StatusSeeOther)

	p = b.add(id, "", "", "1", pipeline.KindBranch)
	p.formOf("save-step").set("name", "Is it large?", "with.cases[0].name", "Large", "with.cases[0].when.tests[0].value", "input.amount",
		"with.cases[0].when.tests[0].op", "more", "with.cases[0].when.tests[0].with", "500").send().is(http.StatusSeeOther)
	p = b.add(id, "decide", "yes", "0", pipeline.KindReview)
	p.formOf("save-step").set("with.question", "Is [Read it › Kind of mail] right?").send().is(http.StatusSeeOther)
	p = b.add(id, "", "", "2", pipeline.KindRepeat)
	p.formOf("save-step").set("with.until.tests[0].value", "").send().is(http.StatusSeeOther)
	b.add(id, "repeat_until", "steps", "0", pipeline.KindSet).formOf("save-step").set("with.values[0].name", "Turn", "with.values[0].formula", "[This round › Number]").send().is(http.StatusSeeOther)
	b.get(s.draftAt(id, "steps", "repeat_until")).formOf("save-step").set("with.until.tests[0].value", "steps.change_data.turn",
		"with.until.tests[0].op", "at_least", "with.until.tests[0].with", "2").send().is(http.StatusSeeOther)

	draft := s.draft(id).Draft
	require.Empty(t, pipeline.Blocking(pipeline.Check(draft)))
	step, _, _ := draft.StepAt("decide")
	require.Equal(t, "input.amount > 500", step.With.(*pipeline.Branch).Cases[0].When)
	step, _, _ = draft.StepAt("ask_ai")
	require.Equal(t, "Amount: {{ input.amount }}", step.With.(*pipeline.AI).Prompt)
	require.Equal(t, "kind_of_mail", step.With.(*pipeline.AI).Answer[0].Name)
	step, _, _ = draft.StepAt("ask_a_person")
	require.Equal(t, "Is {{ steps.ask_ai.kind_of_mail }} right?", step.With.(*pipeline.Review).Question)
	step, _, _ = draft.StepAt("repeat_until")
	require.Equal(t, "steps.change_data.turn >= 2", step.With.(*pipeline.Repeat).Until)
	step, _, _ = draft.StepAt("change_data")
	require.Equal(t, []pipeline.Value{{Name: "turn", Formula: "round"}}, step.With.(*pipeline.Set).Values)

	b.get(s.draftAt(id, "publish")).is(http.StatusOK).says("It is the first version").formOf("publish").send().leadsTo(s.at("pipelines", id.String()))
	one, version := s.live(id)
	require.Equal(t, 1, one.Live)
	require.Equal(t, pipeline.Semantics, version.Document.Semantics)
	require.Len(t, s.published(id), 1)
	b.get(s.draftAt(id)).says("the same as v1, which is live").hides("to-publish")
}

func TestStepsAreMovedCopiedTurnedOffAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := s.emails()
	ids := func() string { return strings.Join(allSteps(s.draft(id).Draft), " ") }
	before := ids()
	first := allSteps(s.draft(id).Draft)[0]
	press := func(step, button string) *page {
		return b.get(s.draftAt(id, "steps", step)).is(http.StatusOK).formOf(button).send().is(http.StatusSeeOther)
	}
	press(first, "move-down")
	require.NotEqual(t, before, ids())
	press(first, "move-up")
	require.Equal(t, before, ids())
	require.True(t, has(b.get(s.draftAt(id, "steps", first)).byTestID("move-up"), "disabled"))

	copied := press(first, "copy-step").follow().is(http.StatusOK)
	copied.says("(copy)")
	require.Contains(t, ids(), first+"_2")
	press(first+"_2", "turn-off").follow().says("Turned off", "turned off")
	require.NotContains(t, strings.Join(allSteps(s.draft(id).Draft.Active()), " "), first+"_2")
	press(first+"_2", "turn-on")
	press(first+"_2", "delete-step").follow().is(http.StatusOK)
	require.Equal(t, before, ids())

	// Undo brings it back, also after a reload; redo takes it away again.
	b.get(s.draftAt(id)).says("Undo").formOf("undo").send().follow().is(http.StatusOK)
	require.Contains(t, ids(), first+"_2")
	b.get(s.draftAt(id)).formOf("redo").send().is(http.StatusSeeOther)
	require.Equal(t, before, ids())

	move := b.get(s.draftAt(id, "steps", first, "move")).is(http.StatusOK)
	form := move.formOf("move-step")
	form.values.Set("to", "//2")
	form.send().leadsTo(s.draftAt(id, "steps", first))
	require.Equal(t, first, s.draft(id).Draft.Steps[1].ID)
	form.values.Set("key", newFormKey())
	form.values.Set("to", "nowhere")
	form.send().is(http.StatusConflict).says("Choose a place")
	b.post(s.draftAt(id, "steps", first, "up")).is(http.StatusBadRequest).says("one-time key")
	b.post(s.draftAt(id, "steps", "no_such", "up"), "key", "k").is(http.StatusNotFound)
}

// Two people who edit different steps at once both keep their work; of two who edit the
// same step the second is shown both.
func TestTwoEditorsLoseNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	steps := allSteps(s.draft(id).Draft)
	ana, ben := s.in(tenants.Builder), s.in(tenants.Admin)
	open := func(b *browser, step string) *drawnForm {
		return b.get(s.draftAt(id, "steps", step)).formOf("save-step")
	}

	one, other := open(ana, steps[0]), open(ben, steps[1])
	same, late := open(ana, steps[0]), open(ben, steps[0])
	one.set("name", "Ana was here").send().is(http.StatusSeeOther)
	other.set("name", "Ben was here").send().is(http.StatusSeeOther)
	draft := s.draft(id).Draft
	for i, name := range []string{"Ana was here", "Ben was here"} {
		step, _, _ := draft.StepAt(steps[i])
		require.Equal(t, name, step.Name)
	}

	p := late.set("name", "Ben again").send().is(http.StatusConflict)
	p.says("saved this step while you were editing it", "Nothing is lost", "Step 1 “Ana was here” is now called “Ben again”.")
	step, _, _ := s.draftStep(id, steps[0])
	require.Equal(t, "Ana was here", step.Name)
	p.formOf("save-step").send().is(http.StatusSeeOther)
	step, _, _ = s.draftStep(id, steps[0])
	require.Equal(t, "Ben again", step.Name)
	same.set("name", "Ana was here").send().is(http.StatusConflict)

	settings, stale := ana.get(s.draftAt(id)).formOf("save-settings"), ben.get(s.draftAt(id)).formOf("save-settings")
	settings.set("note", "By Ana").send().is(http.StatusSeeOther)
	p = stale.set("note", "By Ben").send().is(http.StatusConflict).says("Somebody saved this form while you were editing it", "By Ben")
	require.Equal(t, "By Ana", s.draft(id).Draft.Note)
	p.formOf("save-settings").send().is(http.StatusSeeOther)
	require.Equal(t, "By Ben", s.draft(id).Draft.Note)
}

// A step that somebody removed meanwhile is told so.
func TestAFormOfARemovedStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	b := s.in(tenants.Builder)
	step := allSteps(s.draft(id).Draft)[0]
	form := b.get(s.draftAt(id, "steps", step)).formOf("save-step")
	b.get(s.draftAt(id, "steps", step)).formOf("delete-step").send()
	form.set("name", "x").send().is(http.StatusNotFound).says("The draft has no such step", "Undo brings back")
}

func TestFormsKeepWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := b.fresh("Faulty")
	p := b.add(id, "", "", "0", pipeline.KindRepeat)
	p = p.formOf("save-step").set("with.max_rounds", "many", "with.max_cost", "a fortune", "with.max_time", "soon").send().is(http.StatusUnprocessableEntity)
	p.says("There are 3 things to fix", "Write a whole number for “Rounds”.", "Write an amount in dollars", "“soon” is not a span of time.")
	for _, name := range []string{"with.max_rounds", "with.max_cost", "with.max_time"} {
		require.Len(t, p.all("a", "href", "#"+anchor(name)), 1)
		require.Len(t, p.all("input", "id", anchor(name)), 1)
	}
	require.Equal(t, "many", p.field("with.max_rounds"))
	p.formOf("save-step").set("with.max_rounds", "3", "with.max_cost", "$2.50", "with.max_time", "20m").send().is(http.StatusSeeOther)
	step, _, _ := s.draftStep(id, "repeat_until")
	require.Equal(t, int64(2_500_000), step.With.(*pipeline.Repeat).MaxCost)
	require.Equal(t, "20m", step.With.(*pipeline.Repeat).MaxTime.String())

	b.get(s.draftAt(id)).formOf("save-settings").set("name", " ").send().is(http.StatusUnprocessableEntity).says("has no name")
	b.get(s.at("pipelines", "new")).formOf("new-pipeline").set("name", "").send().is(http.StatusUnprocessableEntity).says("has no name")
}

func TestRowsAreAddedRemovedAndMoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := b.fresh("Rows")
	p := b.add(id, "", "", "0", pipeline.KindAI)
	form := func() *drawnForm { return b.get(s.draftAt(id, "steps", "ask_ai")).formOf("save-step") }
	models := func() []string {
		step, _, _ := s.draftStep(id, "ask_ai")
		return step.With.(*pipeline.AI).Models
	}
	require.Equal(t, []string{"practice/standard"}, models())
	p = p.formOf("save-step").set("do", "more:with.models").send().follow()
	p.formOf("save-step").set("with.models[1]", terra).send().is(http.StatusSeeOther)
	require.Equal(t, []string{"practice/standard", terra}, models())
	form().set("do", "up:with.models[1]").send().is(http.StatusSeeOther)
	require.Equal(t, []string{terra, "practice/standard"}, models())
	form().set("do", "remove:with.models[0]").send().is(http.StatusSeeOther)
	require.Equal(t, []string{"practice/standard"}, models())
	// Files that the AI reads are picked as those of a mail are.
	form().set("do", "more:with.files").send().follow().formOf("save-step").set("with.files[0]", "[This run › Name]").send().is(http.StatusSeeOther)
	reading, _, _ := s.draftStep(id, "ask_ai")
	require.Equal(t, []string{"run.name"}, reading.With.(*pipeline.AI).Files)
	b.get(s.draftAt(id, "steps", "ask_ai")).says("Files it should read (images, PDF)", " to read.")
	form().set("do", "remove:with.files[0]").send().is(http.StatusSeeOther)
	f := form()
	f.values.Set("with.models.n", "999999999")
	f.send().is(http.StatusUnprocessableEntity)
	// Without a script the button inserts what was chosen at the end.
	f = form().set("with.prompt", "Read", "data:with.prompt", "[This run › Name]", "do", "insert:with.prompt")
	f.send().leadsTo(s.draftAt(id, "steps", "ask_ai") + "#" + anchor("with.prompt"))
	step, _, _ := s.draftStep(id, "ask_ai")
	require.Equal(t, "Read {{ run.name }}", step.With.(*pipeline.AI).Prompt)
}

// Publishing is for the draft that was seen, happens once, asks why, and leaves open runs
// on their version; an earlier version comes back in two clicks.
func TestDraftsArePublishedAndRolledBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := s.publish(s.home, askingDocument("Press releases"))
	s.start(s.home, id, map[string]string{"topic": "winter"})
	s.work()
	rename := func(name string) {
		b.get(s.draftAt(id, "steps", "ask")).formOf("save-step").set("name", name).send().is(http.StatusSeeOther)
	}
	rename("Ask the editor")
	p := b.get(s.draftAt(id, "publish")).is(http.StatusOK).says("Publish v2?", "is now called “Ask the editor”", "1 open run stays on v1.")
	stale := p.formOf("publish").set("note", "the editor decides")
	p.formOf("publish").send().is(http.StatusUnprocessableEntity).says("Say in a few words")
	rename("Ask the chief editor")
	stale.send().is(http.StatusConflict).says("Somebody was faster")
	press := b.get(s.draftAt(id, "publish")).formOf("publish").set("note", "the chief decides")
	var presses sync.WaitGroup
	for range 4 {
		twin := &drawnForm{p: &page{t: t, browser: &browser{s: s, cookies: b.cookies}}, action: press.action, values: press.values}
		presses.Go(func() { twin.send() })
	}
	presses.Wait()
	one, version := s.live(id)
	require.Equal(t, 2, one.Live)
	require.Equal(t, "the chief decides", version.Note)
	require.Equal(t, 1, s.runs()[0].Run.Version)

	b.get(s.at("pipelines", id.String(), "versions", "compare")+"?from=1&to=2").is(http.StatusOK).says("From v1 to v2", "Ask the chief editor")
	versions := b.get(s.at("pipelines", id.String(), "versions")).is(http.StatusOK).says("make it live again")
	_ = versions
	ask := b.get(s.at("pipelines", id.String(), "versions", "restore") + "?version=1").is(http.StatusOK).says("Make v1 live again?")
	back := ask.formOf("restore")
	back.send().leadsTo(s.at("pipelines", id.String(), "versions"))
	back.send().is(http.StatusConflict)
	one, version = s.live(id)
	require.Equal(t, 3, one.Live)
	require.Equal(t, "v1 again", version.Note)
	require.Equal(t, "Ask the reviewer", version.Document.Steps[0].Name)
	require.Equal(t, "Ask the reviewer", s.draft(id).Draft.Steps[0].Name, "a draft without changes follows")
	b.get(s.at("pipelines", id.String(), "versions", "restore") + "?version=99").is(http.StatusNotFound)
}

func TestADraftWithProblemsIsNotPublished(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := b.fresh("Unfinished")
	b.add(id, "", "", "0", pipeline.KindEmail).hides(`class="flag is-failed"`)
	b.get(s.draftAt(id, "steps", "send_an_e_mail")).says("It has no address. Choose who gets it.")
	b.get(s.draftAt(id, "publish")).is(http.StatusOK).says("To fix first").hides(`data-testid="publish"`)
	b.post(s.draftAt(id, "publish"), "seen", "1", "live", "0").is(http.StatusUnprocessableEntity)
	one := s.draft(id)
	require.Zero(t, one.Live)
}

func TestWhoMayNotBuildLooksOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	id := s.emails()
	step := allSteps(s.draft(id).Draft)[0]
	for _, role := range tenants.Roles() {
		b := s.in(role)
		p := b.get(s.draftAt(id, "steps", step)).is(http.StatusOK)
		if role.May(tenants.BuildPipelines) {
			p.byTestID("save-step")
			continue
		}
		p.hides("save-step", "move-up", "Add step").says("You can look at the draft")
		b.get(s.draftAt(id)).is(http.StatusOK).hides("save-settings")
		b.get(s.at("pipelines", id.String())).hides(`data-testid="edit"`)
	}
}

// Discarding makes the draft what is live, and can be undone.
func TestChangesAreDiscarded(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := s.drafted("invoice-check", busyDraft(t))
	b.get(s.draftAt(id, "changes")).is(http.StatusOK).says("is added").formOf("discard").send().leadsTo(s.draftAt(id))
	b.get(s.draftAt(id, "changes")).says("No change")
	b.get(s.draftAt(id)).formOf("undo").send()
	b.get(s.draftAt(id, "changes")).says("is added")
}
