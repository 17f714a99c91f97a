package pipeline_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// Each model of each step is judged, however deep the step stands; what is turned off and
// what is no name at all is left alone.
func TestModelsThatCannotBeAskedAreTold(t *testing.T) {
	t.Parallel()
	ask := func(id, models, more string) string {
		return `{"id":"` + id + `","name":"Ask","kind":"ai"` + more + `,"with":{"models":[` + models + `],"instructions":"i","prompt":"p"}}`
	}
	document, err := pipeline.Parse([]byte(`{"semantics":3,"name":"D","steps":[` + ask("a", `"good/one","bad/one"`, "") + `,
		{"id":"b","name":"B","kind":"branch","with":{"cases":[{"id":"c","name":"C","when":"true","steps":[` + ask("d", `"bad/two","no name"`, "") + `]}]}},
		` + ask("off", `"bad/three"`, `,"off":true`) + `]}`))
	require.NoError(t, err)
	problems := pipeline.CheckModels(document, func(model string) string {
		if strings.HasPrefix(model, "bad/") {
			return "Choose another."
		}
		return ""
	})
	var found []string
	for _, p := range problems {
		found = append(found, string(p.Severity)+" "+p.Step+" "+p.Field+" "+p.Says)
	}
	require.Equal(t, []string{
		"blocks a with.models[1] “bad/one” cannot be asked. Choose another.",
		"blocks d with.models[0] “bad/two” cannot be asked. Choose another.",
	}, found)
}
