package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// drawnForm is a form as a browser would send it, with its address.
type drawnForm struct {
	p      *page
	action string
	values url.Values
}

// formOf reads the form in which the button with a test id stands.
func (p *page) formOf(testID string) *drawnForm {
	p.t.Helper()
	button := p.byTestID(testID)
	form := button.Parent
	for form != nil && form.Data != "form" {
		form = form.Parent
	}
	require.NotNil(p.t, form)
	f := &drawnForm{p: p, action: attr(form, "action"), values: url.Values{}}
	for node := range form.Descendants() {
		f.read(node)
	}
	if name := attr(button, "name"); name != "" {
		f.values.Set(name, attr(button, "value"))
	}
	return f
}

func (f *drawnForm) read(node *html.Node) {
	name := attr(node, "name")
	if node.Type != html.ElementNode || name == "" {
		return
	}
	switch node.Data {
	case "input":
		switch kind := attr(node, "type"); {
		case (kind == "checkbox" || kind == "radio") && !has(node, "checked"):
		default:
			f.values.Add(name, attr(node, "value"))
		}
	case "textarea":
		text := ""
		if node.FirstChild != nil {
			text = node.FirstChild.Data
		}
		f.values.Add(name, strings.ReplaceAll(strings.TrimPrefix(text, "\n"), "\n", "\r\n"))
	case "select":
		f.values.Add(name, chosen(node))
	}
}

// chosen is the value of a select's option that is selected, or of its first.
func chosen(node *html.Node) string {
	first, found := "", false
	for option := range node.Descendants() {
		if option.Data != "option" {
			continue
		}
		if has(option, "selected") {
			return attr(option, "value")
		}
		if !found {
			first, found = attr(option, "value"), true
		}
	}
	return first
}

// set types into a field that the form has.
func (f *drawnForm) set(pairs ...string) *drawnForm {
	f.p.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		require.True(f.p.t, f.values.Has(pairs[i]) || pairs[i] == "do", "the form has no field %q: %v", pairs[i], f.values)
		f.values.Set(pairs[i], pairs[i+1])
	}
	return f
}

func (f *drawnForm) send() *page {
	r := f.p.browser.request(http.MethodPost, f.action, strings.NewReader(f.values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return f.p.browser.do(r)
}

func (s *site) draft(id pipeline.ID) pipeline.Draft {
	s.t.Helper()
	var draft pipeline.Draft
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		draft, err = pipeline.ReadDraft(ctx, tx, id)
		return err
	})
	return draft
}

// unchanged requires that the draft is what it was, and tells the differences in sentences.
func (s *site) unchanged(id pipeline.ID, before string) {
	s.t.Helper()
	was, err := pipeline.Parse([]byte(before))
	require.NoError(s.t, err)
	now := s.draft(id).Draft
	require.Empty(s.t, pipeline.Changes(was, now))
	require.True(s.t, before == string(now.JSON()), "something differs that no sentence tells")
}

func (s *site) draftAt(id pipeline.ID, parts ...string) string {
	return s.at(append([]string{"pipelines", id.String(), "draft"}, parts...)...)
}

// A form that is saved as it was drawn changes nothing, for every step of every template,
// and for a step of each kind with all of its settings.
func TestAFormSavedAsDrawnChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	for _, template := range pipeline.Templates() {
		id := s.publish(s.home, template.Document)
		before := string(s.draft(id).Draft.JSON())
		b.get(s.draftAt(id)).is(http.StatusOK).formOf("save-settings").send().leadsTo(s.draftAt(id))
		s.unchanged(id, before)
		for _, step := range allSteps(template.Document) {
			b.get(s.draftAt(id, "steps", step)).is(http.StatusOK).formOf("save-step").send().leadsTo(s.draftAt(id, "steps", step))
			s.unchanged(id, before)
		}
		require.Zero(t, s.draft(id).Revision)
	}
}

func allSteps(d pipeline.Document) []string {
	var ids []string
	var walk func([]*pipeline.Node)
	walk = func(nodes []*pipeline.Node) {
		for _, node := range nodes {
			ids = append(ids, node.ID())
			for _, list := range node.Lists {
				walk(list.Nodes)
			}
		}
	}
	walk(pipeline.Sketch(d).Roots())
	return ids
}

// rich has every setting of the kinds that templates use little of.
func rich() []pipeline.Step {
	day := pipeline.Duration(24 * 3600e9)
	return []pipeline.Step{
		{ID: "call", Name: "Call", Kind: pipeline.KindHTTP, Timeout: &day, Note: "why", Retry: &pipeline.Retry{Attempts: 3, First: &day, Longest: &day},
			OnError: []pipeline.Catch{
				{Classes: []string{"timeout", "exception"}, Do: pipeline.CatchDefault, Default: []byte(`{"a":1}`)},
				{Do: pipeline.CatchAsk, Ask: &pipeline.Review{Question: "Go on?", People: []pipeline.Person{{Role: "owner"}}}},
			},
			With: &pipeline.HTTP{Method: "POST", URL: "https://x.example/{{ input.order_number }}", Query: []pipeline.Param{{Name: "q", Value: "1"}},
				Headers: []pipeline.Header{{Name: "X-A", Value: "b"}, {Name: "X-S", Secret: "erp"}}, Body: `{"a": input.order_number}`, Send: pipeline.SendForm,
				Auth: &pipeline.Auth{Kind: pipeline.AuthOAuth2, Secret: "erp", User: "u", TokenURL: "https://t.example", Scope: "s"}, Success: []string{"201", "3xx"},
				Answer: pipeline.AnswerText, IdempotencyHeader: "X-Key", MaxBytes: 1000, IfUnsure: pipeline.UnsureLookUp,
				LookUp: &pipeline.LookUp{URL: "https://x.example", Arrived: "answer.status == 200", Value: "answer.body"}, Ask: []pipeline.Person{{Email: "a@b.example"}}}},
		{ID: "event", Name: "Event", Kind: pipeline.KindEvent, With: &pipeline.Event{Name: "paid", Key: "{{ input.order_number }}", Deadline: &day, OnDeadline: pipeline.DeadlineContinue}},
		{ID: "emit", Name: "Emit", Kind: pipeline.KindEmit, With: &pipeline.Emit{Name: "paid", Key: "k", Data: []pipeline.Value{{Name: "n", Formula: "1 + 1"}}}},
		{ID: "child", Name: "Child", Kind: pipeline.KindChild, With: &pipeline.Child{Pipeline: tenants.NewID[pipeline.Pipeline]().String(), Version: 2, Wait: true, Input: []pipeline.Value{{Name: "n", Formula: "1"}}}},
		{ID: "until", Name: "Until", Kind: pipeline.KindWait, With: &pipeline.Wait{Until: "run.started_at"}},
		{ID: "halt", Name: "Halt", Kind: pipeline.KindStop, With: &pipeline.Stop{Outcome: pipeline.StopRaise, Exception: "regulatory_hold", Message: "no"}},
		{ID: "best", Name: "Best", Kind: pipeline.KindParallel, With: &pipeline.Parallel{Combine: pipeline.CombineBest, Score: "item.n", WaitFor: pipeline.WaitFirst, Good: "item.n > 1", Branches: []pipeline.Lane{
			{ID: "one", Name: "One", Result: "steps.in_one", Steps: []pipeline.Step{{ID: "in_one", Name: "In", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "n", Formula: "1"}}}}}},
			{ID: "two", Name: "Two", Steps: []pipeline.Step{{ID: "in_two", Name: "In", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "n", Formula: "2"}}}}}},
		}}},
		{ID: "asks", Name: "Asks", Kind: pipeline.KindAI, With: &pipeline.AI{Models: []string{"practice/standard", "other/model"}, Instructions: "a\nb", Prompt: "p", MaxTokens: 5, MaxCost: 12_345,
			OnRefusal: pipeline.RefusalNext, IfMissing: pipeline.MissingEmpty, Reuse: true, ReuseFor: &day, Keep: pipeline.KeepSent, Ask: []pipeline.Person{{Everyone: true}}, Answer: []pipeline.Field{
				{Name: "pick", Label: "Pick", Type: pipeline.TypeChoice, Choices: []pipeline.Choice{{Value: "a", Label: "A"}, {Value: "b"}}},
				{Name: "rows", Type: pipeline.TypeList, Of: &pipeline.Field{Type: pipeline.TypeRecord, Fields: []pipeline.Field{{Name: "x", Type: pipeline.TypeText}}}},
				{Name: "long", Type: pipeline.TypeText, Long: true, Help: "h"},
			}}},
	}
}

func TestRichStepsSurviveTheirForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := s.drafted("invoice-check", func(d pipeline.Document) pipeline.Document {
		d.Steps = append(d.Steps, rich()...)
		d.Concurrency = &pipeline.Concurrency{Limit: 3, Policy: pipeline.ConcurrencySkip}
		d.Search = []string{d.Searchable()[0].Name}
		return d
	})
	before := string(s.draft(id).Draft.JSON())
	b.get(s.draftAt(id)).is(http.StatusOK).formOf("save-settings").send().leadsTo(s.draftAt(id))
	for _, step := range allSteps(s.draft(id).Draft) {
		b.get(s.draftAt(id, "steps", step)).is(http.StatusOK).formOf("save-step").send().is(http.StatusSeeOther)
		s.unchanged(id, before)
	}
}
