package web

import (
	"strings"
	"testing"
	"time"

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
				// Pressed by script: a press at a point may meet a page that is still settling.
				browsertest.Eval[bool](p, `(()=>{document.querySelector('#model input[value="`+model+`"]').click();document.querySelector('[data-testid="change-model"]').click();return true})()`)
			}
			choose("openai/house-model")
			awaitIn(t, p, `document.querySelector('[data-testid="faults"]')`)
			p.Shot("model-refused")
			for _, complaint := range p.Complaints() {
				require.True(t, strings.Contains(complaint, "Failed to load resource"), complaint)
			}
			require.Empty(t, p.Overflow())
			require.Empty(t, p.Axe())
			choose(terra)
			awaitIn(t, p, `!document.querySelector('[data-testid="faults"]')&&document.querySelector('#model input[value="`+terra+`"]:checked')`)
			p.Shot("model-changed")
			one, _ := s.live(id)
			require.Equal(t, 2, one.Live)
		})
	}
}

// awaitIn waits until a condition holds on the loaded page, whichever page that is by
// then: asking anew each time outlives the change from one page to the next.
func awaitIn(t *testing.T, p *browsertest.Page, condition string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return browsertest.Eval[bool](p, `document.readyState==="complete"&&Boolean(`+condition+`)`)
	}, 60*time.Second, 50*time.Millisecond, "waiting for %s", condition)
}
