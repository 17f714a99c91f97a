package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/llm"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/jobs"
	"tollgate/tenants"
)

// Every template runs from begin to end on its sample, and along the ways that something
// unusual takes: people refuse or do not answer, what is waited for does not come, a model
// gives nothing, an exception is raised. Together they pass every step there is.
func TestTemplatesRunToTheEnd(t *testing.T) {
	t.Parallel()
	h := build(t, map[pipeline.Kind]engine.Caller{pipeline.KindAI: failingModels(t)})
	h.work()
	ways := map[string]*wayThrough{}
	for _, template := range pipeline.Templates() {
		require.Contains(t, templateRoutes, template.Slug)
		require.Greater(t, len(templateRoutes[template.Slug]), 1, "%s has a way of its exceptions", template.Slug)
		for _, one := range templateRoutes[template.Slug] {
			way := &wayThrough{route: one, turns: map[string]int{}, seen: map[string]bool{}}
			way.run = h.startSample(one.of(t, template.Document))
			ways[template.Slug+", "+one.name] = way
		}
	}
	require.Eventually(t, func() bool {
		open := 0
		for _, way := range ways {
			if !way.ended && !h.helpOn(way) {
				open++
			}
		}
		return open == 0
	}, 2*time.Minute, 50*time.Millisecond)
	ran := map[string]map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		slug, _, _ := strings.Cut(name, ",")
		if ran[slug] == nil {
			ran[slug] = map[string]bool{}
		}
		t.Run(name, func(t *testing.T) { ways[name].check(t, h, ran[slug]) })
	}
	for _, template := range pipeline.Templates() {
		for _, step := range regexp.MustCompile(`"id":"([a-z0-9_]+)","name":"[^"]*","kind"`).FindAllStringSubmatch(string(template.Document.JSON()), -1) {
			assert.True(t, ran[template.Slug][step[1]], "no way through %s passes %q", template.Slug, step[1])
		}
	}
	h.requireSound()
}

// What a template says that its sample costs is what it does cost, within a fifth.
func (w *wayThrough) costs(t *testing.T, h *house, said int64) {
	t.Helper()
	spent := int64(h.count(`SELECT coalesce(sum(cost_micros), 0) FROM charges WHERE run_id = $1`, w.run))
	require.InEpsilon(t, spent, said, 0.2, "the sample costs %d", spent)
}

// route is one way through a template.
type route struct {
	name    string
	input   string              // entries in place of the sample's, JSON
	answers string              // recorded answers in place of the sample's, JSON
	fails   map[string]string   // classes of failures of models by step
	people  map[string][]string // what people say by step and turn; else they agree
	events  map[string][]string // data by step and turn; else that of happens

	state   engine.RunState // "" means completed
	failure string          // class
	result  []string        // parts of the result
	steps   []string        // that ran
	not     []string        // that did not
}

// What people and events may do in place of an answer.
const (
	saysNo      = "no"
	saysNothing = "nothing"
)

// happens is the data of an event that a route says nothing about.
const happens = `{"cause": "A worn bearing", "by": "J. Lindqvist", "status": "passed", "report": "214 passed", "text": "PASSPORT"}`

// keyOfEvent ends where the key of a step that waits for an event begins.
var keyOfEvent = regexp.MustCompile(`("kind":"event","with":\{"name":"[^"]*","key":")`)

// of is the document with what the route changes.
func (r route) of(t *testing.T, d pipeline.Document) pipeline.Document {
	t.Helper()
	sample := *d.Sample
	sample.Answers = maps.Clone(sample.Answers)
	if r.input != "" {
		var input, changed map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(sample.Input, &input))
		require.NoError(t, json.Unmarshal([]byte(r.input), &changed))
		maps.Copy(input, changed)
		var err error
		sample.Input, err = json.Marshal(input)
		require.NoError(t, err)
	}
	if r.answers != "" {
		var changed map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(r.answers), &changed))
		maps.Copy(sample.Answers, changed)
	}
	d.Sample = &sample
	// Events of one way are none of another's.
	text := keyOfEvent.ReplaceAllString(string(d.JSON()), "${1}"+r.name+" ")
	for step, class := range r.fails {
		at := regexp.MustCompile(`"id":"` + step + `".*?"instructions":"`).FindStringIndex(text)
		require.NotNil(t, at, step)
		text = text[:at[1]] + "FAIL " + class + ". " + text[at[1]:]
	}
	out, err := pipeline.Parse([]byte(text))
	require.NoError(t, err)
	return out
}

// failingModels is the practice model, which fails where its instructions say so.
func failingModels(t *testing.T) engine.Caller {
	registry, err := llm.NewRegistry(llm.PracticeEntry(llm.NewPractice(0, 0)))
	require.NoError(t, err)
	practice := jobs.AI{Registry: registry}
	wish := regexp.MustCompile(`"FAIL ([a-z_]+)\. `)
	return callerFunc(func(ctx context.Context, call engine.Call) engine.Reply {
		if m := wish.FindSubmatch(call.Input); m != nil {
			return engine.Reply{Failure: &engine.Failure{Class: string(m[1]), Message: "The model gave nothing."}}
		}
		return practice.Call(ctx, call)
	})
}

// wayThrough is a run on its route.
type wayThrough struct {
	route
	run   engine.RunID
	ended bool
	turns map[string]int  // by step: how many waits there were
	seen  map[string]bool // waits that were answered
}

// next is the next entry of a step's list; its last counts for all turns behind it.
func (w *wayThrough) next(wait engine.Wait, step string, list []string) string {
	if !w.seen[wait.ID.String()] {
		w.seen[wait.ID.String()] = true
		w.turns[step]++
	}
	if len(list) == 0 {
		return ""
	}
	return list[min(w.turns[step], len(list))-1]
}

// startSample begins a run of a document on its sample, started by nobody, so that the
// owner may decide.
func (h *house) startSample(document pipeline.Document) engine.RunID {
	h.t.Helper()
	input, files, err := document.SampleInput()
	require.NoError(h.t, err)
	id := h.publish(string(document.JSON()))
	var started engine.Started
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		var err error
		started, err = h.engine.Start(ctx, tx, engine.StartRequest{
			Pipeline: id, Input: input, Files: files, Sample: true, Key: tenants.NewID[engine.Run]().String(),
		})
		return err
	})
	return started.Run.ID
}

// helpOn does what the route says about each open wait; it tells whether the run has ended.
func (h *house) helpOn(w *wayThrough) bool {
	h.t.Helper()
	p := h.progress(w.run)
	for id, wait := range p.Waits {
		step := ""
		for _, row := range p.Steps {
			if row.ID == id {
				step = row.StepID
			}
		}
		switch wait.Kind {
		case engine.WaitReview:
			h.reply(id, w.next(wait, step, w.people[step]))
		case engine.WaitEvent:
			h.happen(wait, w.next(wait, step, w.events[step]))
		}
	}
	w.ended = p.Run.State.Final()
	return w.ended
}

// happen sends what is waited for, or lets its time pass.
func (h *house) happen(wait engine.Wait, data string) {
	h.t.Helper()
	if data == saysNothing {
		h.exec(`UPDATE waits SET due_at = now() - interval '1 hour' WHERE state = 'open' AND id = '` + wait.ID.String() + `'`)
		return
	}
	if data == "" {
		data = happens
	}
	h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := h.engine.SendEvent(ctx, tx, engine.Event{
			Name: wait.EventName, Key: wait.EventKey, Data: []byte(data), Sender: "a test", SenderID: wait.ID.String(),
		})
		return err
	})
}

// reply answers the review of a step, if it is still open, or lets its time pass.
func (h *house) reply(step engine.StepRunID, says string) {
	h.t.Helper()
	if says == saysNothing {
		h.exec(`UPDATE reviews SET due_at = now() - interval '1 hour' WHERE state = 'open' AND step_run_id = '` + step.String() + `'`)
		h.exec(`UPDATE waits SET due_at = now() - interval '1 hour' WHERE state = 'open' AND step_run_id = '` + step.String() + `'`)
		return
	}
	verdict, comment := review.Approve, ""
	if says == saysNo {
		verdict, comment = review.Reject, "Not like this."
	}
	err := h.db.InTx(h.t.Context(), h.tenant, func(ctx context.Context, tx tenants.Tx) error {
		detail, err := h.reviews.ByStepRun(ctx, tx, step)
		if err != nil || !detail.Open() {
			return err
		}
		_, err = h.engine.DecideReview(ctx, tx, h.answer(detail, verdict, comment))
		return err
	})
	if errors.Is(err, review.ErrNotFound) || errors.Is(err, review.ErrNotOpen) || errors.Is(err, review.ErrAlreadyDecided) || errors.Is(err, engine.ErrNotWaiting) {
		return
	}
	require.NoError(h.t, err)
}

// check looks at how the run ended and which way it took.
func (w *wayThrough) check(t *testing.T, h *house, everRan map[string]bool) {
	p := h.progress(w.run)
	state := w.state
	if state == "" {
		state = engine.RunCompleted
	}
	require.Equal(t, state, p.Run.State, "%+v", p.Run.Failure)
	if w.failure != "" {
		require.Equal(t, w.failure, p.Run.Failure.Class, p.Run.Failure.Message)
	}
	ran := map[string]bool{}
	for _, row := range p.Steps {
		ran[row.StepID] = true
		require.False(t, row.State.Open(), "step %q is open", row.StepID)
	}
	maps.Copy(everRan, ran)
	for _, step := range w.steps {
		require.True(t, ran[step], "%s ran", step)
	}
	for _, step := range w.not {
		require.False(t, ran[step], "%s did not run", step)
	}
	if len(w.result) > 0 {
		var result bytes.Buffer
		require.NoError(t, json.Compact(&result, []byte(h.value(p.Run.Result))))
		for _, part := range w.result {
			require.Contains(t, result.String(), part)
		}
	}
	if w.name == onSample {
		template := pipeline.Templates()[slices.IndexFunc(pipeline.Templates(), func(one pipeline.Template) bool {
			return strings.HasPrefix(t.Name(), "TestTemplatesRunToTheEnd/"+one.Slug+",")
		})]
		w.costs(t, h, template.SampleCost)
	}
}
