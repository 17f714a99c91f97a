package web

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// The live version is exported as a file, behind a page that says what is lost.
func TestPipelineIsExported(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template, _ := pipeline.TemplateBySlug("code-change")
	document := template.Document
	document.Name = `../"x"` + hostile
	id := s.publish(s.home, document).String()
	b := s.in(tenants.Builder)
	b.get(s.at("pipelines", id, "versions")).is(http.StatusOK).says("Export")
	b.get(s.at("pipelines", id, "export")).is(http.StatusOK).says("Export v1 to the Open Workflow DSL", "The function askAI has to be provided", "Until the checks pass", "limits of money and time").hides("<img")
	file := b.get(s.at("pipelines", id, "export", "file")).is(http.StatusOK)
	require.Equal(t, `attachment; filename=x-img-src-x-onerror-alert-1.workflow.json`, file.header.Get("Content-Disposition"))
	var out struct {
		Document struct{ DSL, Title string }
		Do       []any
	}
	require.NoError(t, json.Unmarshal([]byte(file.body), &out))
	require.Equal(t, "1.0.3", out.Document.DSL)
	require.Len(t, out.Do, len(document.Steps))

	s.in(tenants.Viewer).get(s.at("pipelines", id, "export")).is(http.StatusForbidden)
	s.in(tenants.Viewer).get(s.at("pipelines", id, "export", "file")).is(http.StatusForbidden)
	s.in(tenants.Viewer).get(s.at("pipelines", id, "versions")).is(http.StatusOK).hides(`data-testid="export"`)
}
