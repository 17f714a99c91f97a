package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/billing/ledger"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// listen makes a site in local mode that a real browser can visit. Its home is the demo
// workspace.
func listen(t *testing.T) *site {
	t.Helper()
	return listenBehind(t, func(pages http.Handler) http.Handler { return pages })
}

// listenBehind is listen with something between the browser and the pages.
func listenBehind(t *testing.T, between func(http.Handler) http.Handler) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := newSite(t, inLocalMode, func(c *Config) { c.BaseURL = "http://" + listener.Addr().String() })
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: between(s.web.Handler())}}
	server.Start()
	t.Cleanup(server.Close)
	s.seedDemo()
	return s
}

// seedDemo makes the demo workspace the home of the site.
func (s *site) seedDemo() {
	s.t.Helper()
	require.NoError(s.t, s.db.InSystemTx(s.t.Context(), func(ctx context.Context, stx tenants.SystemTx) error {
		if _, err := tenants.SeedDemo(ctx, stx); err != nil {
			return err
		}
		people, err := tenants.DemoPeople(ctx, stx)
		s.home = workspace{Tenant: people[0].Tenant, people: map[tenants.Role]tenants.Membership{}}
		for _, person := range people {
			s.home.people[person.Role] = person
		}
		return err
	}))
}

// fill gives the home workspace something of everything: reviews for the owner, a run
// that failed, and caps.
func (s *site) fill() {
	s.t.Helper()
	document := askingDocument("Press releases, sign-off")
	document.Steps[0].With.(*pipeline.Review).People = []pipeline.Person{{Role: string(tenants.Owner)}}
	asks, fails := s.publish(s.home, document), s.publish(s.home, failingDocument("Word count of a page"))
	for _, topic := range []string{"the winter catalogue", hostile, "the new opening hours of the shop in the Kastanienallee, with a map and a photo"} {
		s.start(s.home, asks, map[string]string{"topic": topic})
	}
	s.start(s.home, fails, map[string]string{"topic": "nothing"})
	s.work()
	s.inTx(s.home.ID, func(ctx context.Context, tx tenants.Tx) error {
		limit := 50 * ledger.Dollar
		return ledger.SetCap(ctx, tx, ledger.Cap{Place: ledger.OfTenant(s.home.ID), Funds: ledger.Pretend, Limit: &limit})
	})
}

const hostile = `<img src=x onerror=alert(1)>`

// become signs the tab in as one of the demo people.
func become(p *browsertest.Page, s *site, role tenants.Role) {
	p.Go(s.web.origin + "/signin")
	p.Press(`[data-testid="as-` + string(role) + `"]`)
	p.AwaitElement(`nav.nav`)
}

// Every page of the frame passes the checks of a browser and of axe on a phone and on a
// desk, light and dark.
func TestTheLookOfTheFrame(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	empty, full := listen(t), s
	full.fill()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			look := func(name, url string) {
				p.Go(url)
				p.Shot(name)
				p.Check(t)
			}
			look("signin", full.web.origin+"/signin")
			look("mailbox", full.web.origin+"/mail")
			p.Press(`#mails a`)
			p.AwaitElement(`#mail-text`)
			p.Shot("mail")
			p.Check(t)
			become(p, full, tenants.Owner)
			p.Shot("home")
			p.Check(t)
			look("workspaces", full.web.origin+"/workspaces")
			lostPage(t, p, full.web.origin+pathIn(full.home.ID)+"/nothing", "lost")
			become(p, empty, tenants.Owner)
			p.Shot("first-day")
			p.Check(t)
			become(p, empty, tenants.Viewer)
			p.Shot("first-day-viewer")
			p.Check(t)
		})
	}
}

// lostPage looks at an error page, whose status the browser's log complains about by itself.
func lostPage(t *testing.T, p *browsertest.Page, url, name string) {
	t.Helper()
	p.Go(url)
	p.Shot(name)
	for _, complaint := range p.Complaints() {
		require.True(t, strings.Contains(complaint, "Failed to load resource"), complaint)
	}
	require.Empty(t, p.Overflow())
	require.Empty(t, p.Axe())
}
