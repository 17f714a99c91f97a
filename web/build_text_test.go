package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// The draft as text is the same draft: saved as it stands it changes nothing, in either
// form; what does not fit is told with its line; two at once lose nothing.
func TestTheDraftIsEditedAsText(t *testing.T) {
	t.Parallel()
	s := newSite(t, withModels)
	b := s.in(tenants.Builder)
	id := s.emails()
	before := string(s.draft(id).Draft.JSON())
	for _, as := range []string{"yaml", "json"} {
		p := b.get(s.draftAt(id, "text") + "?as=" + as).is(http.StatusOK)
		p.formOf("save-text").send().leadsTo(s.draftAt(id, "text") + "?as=" + as)
		s.unchanged(id, before)
		file := b.get(s.draftAt(id, "file") + "?as=" + as).is(http.StatusOK)
		require.Contains(t, file.header.Get("Content-Disposition"), "pipeline."+as)
		stale := b.get(s.draftAt(id, "text")+"?as="+as).formOf("save-text").set("text", file.body)
		b.get(s.draftAt(id)).formOf("save-settings").set("note", "meanwhile, "+as).send().is(http.StatusSeeOther)
		stale.send().is(http.StatusConflict).says("Nothing was saved")
		require.Equal(t, "meanwhile, "+as, s.draft(id).Draft.Note)
		b.get(s.draftAt(id, "text")+"?as="+as).formOf("save-text").set("text", file.body).send().is(http.StatusSeeOther)
		s.unchanged(id, before)
	}
	form := b.get(s.draftAt(id, "text")).formOf("save-text")
	form.set("text", "semantics: 1\nname: <b>x</b>\ncolour: red\nsteps: []\n").send().is(http.StatusUnprocessableEntity).says("Line 3.", "colour").hides("<b>x")
	form.set("text", "semantics: 1\nname: \"\"\nsteps: []\n").send().is(http.StatusUnprocessableEntity).says("Line 2.", "has no name")
	form.set("text", "{").send().is(http.StatusUnprocessableEntity).says("Line 1.")
	s.unchanged(id, before)
	s.in(tenants.Viewer).get(s.draftAt(id, "text")).is(http.StatusOK).hides("save-text").says("semantics:")
}

func TestTheSchemaIsAtAnAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.visitor().get("/schema/pipeline.json").is(http.StatusOK)
	require.Equal(t, "application/schema+json", p.header.Get("Content-Type"))
	require.Contains(t, p.body, "https://json-schema.org/draft/2020-12/schema")
}
