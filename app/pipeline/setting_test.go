package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// filled is a template with an answer for each of its settings.
func filled(t *testing.T, template Template) Document {
	t.Helper()
	answers := map[string]string{}
	for _, s := range template.Settings {
		answers[s.Name] = " ana." + s.Name + "@company.example "
	}
	d, problems := template.Fill(template.Document, answers)
	require.Empty(t, problems)
	return d
}

// What is set takes the place of what stood for it everywhere, and nothing that belonged
// to the company of the template is left.
func TestTemplatesAreFilledIn(t *testing.T) {
	t.Parallel()
	for _, template := range Templates() {
		require.ElementsMatch(t, template.Settings, template.Missing(template.Document), "each setting of %s is used", template.Slug)
		before := string(template.Document.JSON())
		d := filled(t, template)
		require.Empty(t, template.Missing(d))
		require.Empty(t, Blocking(Check(d)), template.Slug)
		require.Equal(t, before, string(template.Document.JSON()))
		require.Equal(t, template.Document.Sample, d.Sample)
		d.Sample = nil
		text := string(d.JSON())
		require.NotContains(t, text, "ordlicht", template.Slug)
		require.NotContains(t, strings.ReplaceAll(text, "@company.example", ""), ".example", template.Slug)
		for _, s := range template.Settings {
			require.NotEmpty(t, s.Label)
			require.Contains(t, text, "ana."+s.Name+"@company.example", "without the spaces around it")
		}
	}
}

// What was set by hand, or before, is not asked for again.
func TestOnlyWhatIsMissingIsAskedFor(t *testing.T) {
	t.Parallel()
	template, ok := TemplateBySlug("customer-email")
	require.True(t, ok)
	d, problems := template.Fill(template.Document, map[string]string{
		"service": "help@shop.example", "shift_lead": "lead@shop.example", "company": "Śliwka & Söhne „Laden“ – 株式会社",
	})
	require.Empty(t, problems)
	require.Contains(t, string(d.JSON()), "Śliwka & Söhne „Laden“ – 株式会社")
	again, problems := template.Fill(d, nil)
	require.Empty(t, problems)
	require.Equal(t, string(d.JSON()), string(again.JSON()))
}

// Answers cannot become part of a formula, a second address or another line.
func TestSettingsRefuseWhatMeansSomething(t *testing.T) {
	t.Parallel()
	template := Template{Settings: []Setting{
		{Name: "mail", Label: "Mail", Type: SettingEmail, Value: "a@b.example"}, {Name: "name", Label: "Name", Type: SettingText, Value: "Acme"},
	}}
	d := Document{Semantics: 1, Name: "Acme", Steps: []Step{{ID: "m", Name: "M", Kind: KindEmail, With: &Email{To: []string{"a@b.example"}, Subject: "S", Body: "B"}}}}
	for name, c := range map[string]struct{ mail, name, says string }{
		"empty":          {"", "X", "is empty"},
		"blank":          {"x@y.example", " \t ", "is empty"},
		"no address":     {"somebody", "X", "is not an e-mail address"},
		"two addresses":  {"a@x.example, b@x.example", "X", "is not an e-mail address"},
		"a named one":    {"Ana <a@x.example>", "X", "is not an e-mail address"},
		"insertion":      {"x@y.example", "{{ input }}", "cannot have braces"},
		"quote":          {"x@y.example", `X" + steps.a + "`, "cannot have braces"},
		"backslash":      {"x@y.example", `X\`, "cannot have braces"},
		"second line":    {"x@y.example", "X\nBcc: y@z.example", "hidden character"},
		"NUL":            {"x@y.example", "X\x00", "hidden character"},
		"broken text":    {"x@y.example", "X\xff", "hidden character"},
		"long":           {"x@y.example", strings.Repeat("ü", 101), "longer than 100 characters"},
		"quoted address": {`"{{ run.id }}"@y.example`, "X", "cannot have braces"},
	} {
		got, problems := template.Fill(d, map[string]string{"mail": c.mail, "name": c.name})
		require.Len(t, problems, 1, name)
		require.Contains(t, problems[0].Message, c.says, name)
		require.Equal(t, string(d.JSON()), string(got.JSON()), name)
	}
}

// Where a failure ends in a stop, nothing behind reads what is not there.
func TestStopBehindAFailureDoesNotGoOn(t *testing.T) {
	t.Parallel()
	stop := Step{ID: "end", Name: "End", Kind: KindStop, With: &Stop{}}
	note := Step{ID: "note", Name: "Note", Kind: KindSet, With: &Set{Values: []Value{{"n", "1"}}}}
	require.False(t, Catch{Do: CatchSteps, Steps: []Step{note, stop}}.goesOn())
	require.True(t, Catch{Do: CatchSteps, Steps: []Step{stop, note}}.goesOn())
	require.True(t, Catch{Do: CatchDefault}.goesOn())
	require.False(t, Catch{Do: CatchFail}.goesOn())
}
