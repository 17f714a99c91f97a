package pipeline

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"tollgate/app/expr"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file, or writes it.
func golden(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestTemplatesAreReadyToPublish(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	require.Len(t, Templates(), 14)
	for _, tpl := range Templates() {
		t.Run(tpl.Slug, func(t *testing.T) {
			t.Parallel()
			for _, p := range Check(tpl.Document) {
				require.Equal(t, Tip, p.Severity, p.Message)
			}
			require.NoError(t, validate(t, schema, tpl.Document.JSON()))
			program, err := Compile(tpl.Document)
			require.NoError(t, err)
			used := map[Kind]bool{}
			for _, n := range program.byID {
				used[n.Kind()] = true
			}
			for _, k := range []Kind{KindAI, KindReview, KindEmail, KindBranch, KindSet} {
				require.True(t, used[k], k)
			}
			golden(t, tpl.Slug+".json", append(tpl.Document.JSON(), '\n'))
			found, ok := TemplateBySlug(tpl.Slug)
			require.True(t, ok)
			require.Equal(t, tpl.Title, found.Title)
			require.NotEmpty(t, found.SampleFiles)
			require.NotEmpty(t, found.Area)
			require.Positive(t, found.SampleCost)
		})
	}
	_, ok := TemplateBySlug("nope")
	require.False(t, ok)
}

// Every sample runs to its end, approved and rejected, through texts, formulas
// and recorded answers, and the two ways differ.
func TestTemplatesRunOnTheirSamples(t *testing.T) {
	t.Parallel()
	for _, tpl := range Templates() {
		t.Run(tpl.Slug, func(t *testing.T) {
			t.Parallel()
			var ways []string
			for _, verdict := range []string{VerdictApproved, VerdictRejected} {
				out, asked := rehearse(t, tpl.Document, verdict)
				golden(t, tpl.Slug+"-"+verdict+".txt", []byte(out))
				if ways = append(ways, out); !asked {
					return // the sample needs no person
				}
			}
			require.NotEqual(t, ways[0], ways[1])
		})
	}
}

// rehearsal walks a program the way an engine does, without one.
type rehearsal struct {
	testing.TB
	scope   expr.Scope
	steps   map[string]any
	sample  *Sample
	verdict string
	turn    int   // of the item or round
	failed  error // what nothing has handled yet
	stopped bool
	asked   bool
	log     strings.Builder
}

func rehearse(t testing.TB, d Document, verdict string) (log string, asked bool) {
	t.Helper()
	program, err := Compile(d)
	require.NoError(t, err)
	input, _, err := d.SampleInput()
	require.NoError(t, err)
	decoded, err := expr.DecodeJSON(input)
	require.NoError(t, err)
	r := &rehearsal{TB: t, steps: map[string]any{}, sample: d.Sample, verdict: verdict}
	r.scope = expr.Scope{"input": decoded, "steps": r.steps, "run": map[string]any{"id": "r1", "started_at": "2026-11-30T09:00:00Z"}}
	r.log.WriteString(r.render(program.RunName()) + "\n")
	r.list(program.Roots())
	require.NoError(t, r.failed)
	if r.stopped {
		return r.log.String(), r.asked
	}
	for _, v := range program.Result() {
		r.log.WriteString("result " + v.Name + ": " + r.eval(v.Formula) + "\n")
	}
	return r.log.String(), r.asked
}

func (r *rehearsal) render(text *expr.Text) string {
	r.Helper()
	if text == nil {
		return ""
	}
	out, err := text.Render(r.Context(), r.scope)
	require.NoError(r, err)
	return out
}

func (r *rehearsal) eval(f *expr.Formula) string {
	r.Helper()
	v, err := f.Eval(r.Context(), r.scope)
	require.NoError(r, err)
	data, err := expr.EncodeJSON(v)
	require.NoError(r, err)
	return string(data)
}

func (r *rehearsal) list(nodes []*Node) {
	for _, n := range nodes {
		if r.failed != nil || r.stopped {
			return
		}
		r.log.WriteString(n.Number + " " + n.Step.Name + "\n")
		r.step(n)
		r.handle(n)
	}
}

func (r *rehearsal) step(n *Node) {
	out := map[string]any{}
	r.steps[n.ID()] = out
	switch n.Kind() {
	case KindAI:
		r.render(n.AI().Instructions)
		r.log.WriteString(r.render(n.AI().Prompt) + "\n")
		answer := r.sample.Answer(n.ID(), r.turn)
		r.checkAnswer(n.AI(), answer)
		v, err := expr.DecodeJSON(answer)
		require.NoError(r, err)
		r.steps[n.ID()] = v
	case KindReview:
		r.review(n, out)
	case KindEmail:
		mail := n.Email()
		for _, to := range append(mail.To, mail.CC...) {
			require.Regexp(r, `^[^@\s]+@[a-z.-]+\.example$`, r.render(to))
			r.log.WriteString("to " + r.render(to) + "\n")
		}
		r.log.WriteString(r.render(mail.Subject) + "\n" + r.render(mail.Body) + "\n" + r.render(mail.ReplyTo) + "\n")
	case KindSet:
		for _, v := range n.Set().Values {
			value, err := v.Formula.Eval(r.Context(), r.scope)
			if err != nil {
				r.failed = err
				return
			}
			out[v.Name] = value
			r.log.WriteString(v.Name + " = " + r.eval(v.Formula) + "\n")
		}
	case KindBranch:
		r.branch(n, out)
	default:
		r.group(n, out)
	}
}

func (r *rehearsal) checkAnswer(ai *CompiledAI, answer []byte) {
	r.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(answerSchema(ai.Answer)))
	require.NoError(r, err)
	c := jsonschema.NewCompiler()
	require.NoError(r, c.AddResource("answer.json", schema))
	compiled, err := c.Compile("answer.json")
	require.NoError(r, err)
	require.NoError(r, validate(r, compiled, answer))
}

func (r *rehearsal) review(n *Node, out map[string]any) {
	r.asked = true
	w := n.Review()
	for _, text := range []*expr.Text{w.Question, w.Body, w.Proposal, w.OnApprove, w.OnReject, w.OnSilence} {
		r.log.WriteString(r.render(text) + "\n")
	}
	for _, f := range w.Facts {
		v, err := f.Value.Eval(r.Context(), r.scope)
		require.NoError(r, err)
		text, err := expr.Words(v)
		require.NoError(r, err)
		r.log.WriteString(f.Label + ": " + text + "\n")
	}
	for _, e := range w.Editable {
		v, err := e.Value.Eval(r.Context(), r.scope)
		require.NoError(r, err)
		out[e.Field.Name] = v
	}
	out["verdict"], out["comment"], out["by"], out["at"] = r.verdict, "Too early.", "Chi Nguyen", "2026-11-30T10:00:00Z"
}

func (r *rehearsal) branch(n *Node, out map[string]any) {
	for _, c := range n.Branch().Cases {
		taken := c.When == nil
		if !taken {
			var err error
			taken, err = c.When.Bool(r.Context(), r.scope)
			require.NoError(r, err)
		}
		if taken {
			r.log.WriteString("way " + string(c.Key) + "\n")
			r.list(c.Nodes)
			out["case"] = string(c.Key)
			return
		}
	}
}
