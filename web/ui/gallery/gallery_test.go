package gallery

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/a-h/templ"
	"github.com/stretchr/testify/require"

	"tollgate/static"
	"tollgate/web/browsertest"
	"tollgate/web/ui"
)

// policy is the product's content security policy, word for word.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

var pages = map[string]templ.Component{
	"everything": Everything(""),
	"home":       Home(""),
	"run":        Run("", ""),
	"review":     Review(""),
	"templates":  Templates(""),
	"firstday":   FirstDay(""),
	"missing":    Missing(""),
	"signin":     SignIn(""),
}

// serve answers every page of the gallery at its name, and the assets.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	for name, page := range pages {
		mux.HandleFunc("/"+name, show(page))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func show(page templ.Component) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := page.Render(r.Context(), w); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// TestPagesInChromium looks at every page in both themes and widths.
func TestPagesInChromium(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	server := serve(t)
	for _, view := range browsertest.Views {
		page := browser.Open(t, view)
		for name := range pages {
			t.Run(view.String()+"/"+name, func(t *testing.T) {
				page.Go(server.URL + "/" + name)
				page.Shot(name)
				page.Check(t)
			})
		}
	}
}

// TestForcedTheme checks that a chosen theme wins over the system's.
func TestForcedTheme(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("/dark", show(Home(ui.Dark)))
	mux.HandleFunc("/light", show(Home(ui.Light)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	background := "getComputedStyle(document.body).backgroundColor"

	light := browser.Open(t, browsertest.View{Width: 1280})
	light.Go(server.URL + "/dark")
	require.Equal(t, "rgb(17, 20, 24)", browsertest.Eval[string](light, background))

	dark := browser.Open(t, browsertest.View{Width: 1280, Dark: true})
	dark.Go(server.URL + "/light")
	require.Equal(t, "rgb(255, 255, 255)", browsertest.Eval[string](dark, background))
}

// withChildren puts rendered HTML between the tags of a component.
func withChildren(inner string) context.Context {
	return templ.WithChildren(context.Background(), templ.Raw(inner))
}
