package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

func TestNamingTheFirstWorkspace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(s.person("first@example.com").ID)
	b.get("/").leadsTo("/workspaces")
	r := b.request(http.MethodGet, "/workspaces", nil)
	r.Header.Set("Accept-Language", "de-AT,de;q=0.9,en;q=0.8")
	p := b.do(r).is(200)
	require.Equal(t, "Name your workspace", p.heading())
	chosen := p.all("option", "selected", "")
	require.NotEmpty(t, chosen)
	made := b.post("/workspaces", "name", " Ostsee Assekuranz ", "zone", "Europe/Vienna").is(http.StatusSeeOther)
	home := made.header.Get("Location")
	require.True(t, strings.HasPrefix(home, "/w/"))
	made.follow().is(200).says("Ostsee Assekuranz", "Europe/Vienna")
	b.get("/").leadsTo(home)
}

func TestBadNamesAndZonesAreToldAndKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.as(s.person("careless@example.com").ID)
	for _, c := range []struct{ name, zone, field string }{
		{"", "UTC", "name"}, {"  ", "UTC", "name"}, {"x\r\ny", "UTC", "name"}, {"a\u202eb", "UTC", "name"}, {"\xff", "UTC", "name"},
		{strings.Repeat("n", 201), "UTC", "name"}, {"Fine", "", "zone"}, {"Fine", "Local", "zone"}, {"Fine", "Mars/Base", "zone"},
		{"Fine", "../../etc/passwd", "zone"},
	} {
		p := b.post("/workspaces", "name", c.name, "zone", c.zone).is(422)
		require.True(t, strings.HasPrefix(p.title(), "Error: "))
		require.Equal(t, "true", attr(p.all("", "name", c.field)[0], "aria-invalid"), "%q %q", c.name, c.zone)
	}
	b.get("/").leadsTo("/workspaces")
}

// A form that is sent twice, also at the same moment, makes one workspace.
func TestAWorkspaceIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	user := s.person("double@example.com").ID
	places := make([]string, 4)
	var all sync.WaitGroup
	for i := range places {
		b := s.as(user)
		all.Go(func() { places[i] = b.post("/workspaces", "name", "Twice ", "zone", "UTC").header.Get("Location") })
	}
	all.Wait()
	for _, place := range places {
		require.NotEmpty(t, place)
		require.Equal(t, places[0], place)
	}
	s.as(user).post("/workspaces", "name", "Another", "zone", "UTC").is(http.StatusSeeOther)
	s.as(user).get("/").leadsTo("/workspaces").follow().is(200).says("2 workspaces", "Twice", "Another", "can do everything")
}

func TestHostileNamesOfWorkspacesAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode)
	b := s.as(s.person("attacker@example.com").ID)
	place := b.post("/workspaces", "name", hostile+`" onload="x`, "zone", "UTC").is(http.StatusSeeOther).header.Get("Location")
	for _, path := range []string{place, "/workspaces", place + "/nothing", "/signin"} {
		p := b.get(path)
		require.Empty(t, p.all("img", "", ""), path)
		require.Empty(t, p.all("", "onload", "x"), path)
		if path == place {
			p.says(hostile)
			require.Contains(t, p.title(), hostile)
		}
	}
}

func TestZonesAreReal(t *testing.T) {
	t.Parallel()
	all := append([]string{}, zones...)
	for _, zone := range homeZones {
		all = append(all, zone)
	}
	for _, zone := range all {
		_, err := time.LoadLocation(zone)
		require.NoError(t, err, zone)
		require.Contains(t, zones, zone, "what is guessed can be chosen")
	}
	for header, zone := range map[string]string{
		"de-DE,de;q=0.9": "Europe/Berlin", "en-GB": "Europe/London", "pt-BR;q=1": "America/Sao_Paulo", "": "UTC", "xx": "UTC", "*": "UTC", ",": "UTC",
		strings.Repeat("d", 1<<16): "UTC",
	} {
		require.Equal(t, zone, guessZone(header), header)
	}
	require.Contains(t, zoneOptions("Asia/Yangon", time.Now())[0].Value, "Asia/Yangon", "an unlisted zone stays chosen")
}

func TestWhoIsInNoWorkspaceOfAnAddressSeesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stranger := s.as(s.person("stranger@example.com").ID)
	known := stranger.get(s.at()).is(404)
	unknown := stranger.get(pathIn(tenants.NewID[tenants.Tenant]())).is(404)
	cut := func(p *page) string { return strings.ReplaceAll(p.body, p.header.Get("X-Request-Id"), "") }
	require.Equal(t, cut(known), cut(unknown), "a foreign workspace looks like none")
}
