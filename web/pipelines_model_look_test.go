package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// The model of a pipeline is chosen in a real browser, first one that is refused.
func TestModelIsChosenInABrowser(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t) // one for both: a browser's cookies do not tell ports apart
	withModels(&s.web.Config)
	for _, width := range []int{390, 1280} {
		view := browsertest.View{Width: width}
		id := s.emails()
		t.Run(view.String(), func(t *testing.T) { // one after the other: they share the browser's cookies
			p := chromium.Open(t, view)
			become(p, s, tenants.Builder)
			p.Go(s.web.origin + s.at("pipelines", id.String()))
			p.Shot("model")
			p.Check(t)
			choose := func(model string) {
				p.Press(`#model input[value="` + model + `"]`)
				p.Press(`[data-testid="change-model"]`)
			}
			choose("openai/house-model")
			p.Await(`document.querySelector('[data-testid="faults"]')`)
			p.Shot("model-refused")
			for _, complaint := range p.Complaints() {
				require.True(t, strings.Contains(complaint, "Failed to load resource"), complaint)
			}
			require.Empty(t, p.Overflow())
			require.Empty(t, p.Axe())
			choose(terra)
			p.Await(`!document.querySelector('[data-testid="faults"]')&&document.querySelector('#model input[value="` + terra + `"]:checked')`)
			p.Shot("model-changed")
			one, _ := s.live(id)
			require.Equal(t, 2, one.Live)
		})
	}
}
