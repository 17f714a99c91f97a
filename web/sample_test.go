package web

import (
	"net/http"
	"testing"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// Who is alone in a workspace may answer the reviews of runs of her own, for nobody
// else could; where somebody else may decide, the starter stays barred.
func TestTemplatesWorkForWhoeverIsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alone := s.as(s.person("alone@example.com").ID)
	home := alone.post("/workspaces", "name", "One room", "zone", "Europe/Vienna").is(http.StatusSeeOther).header.Get("Location")
	const allowed = "Who started the run may answer too."
	for _, template := range pipeline.Templates() {
		alone.post(home+"/templates/"+template.Slug+"/use", answersTo(template)...).is(http.StatusSeeOther).follow().is(200).says(allowed)
		s.in(tenants.Owner).post(s.at("templates", template.Slug, "use"), answersTo(template)...).is(http.StatusSeeOther).follow().is(200).hides(allowed)
	}
}
