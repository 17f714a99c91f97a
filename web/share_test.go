package web

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// secretDocument has names and values that outsiders must not see.
func (s *site) secretRun() engine.Run {
	document := askingDocument("Orders " + hostile)
	id := s.publish(s.home, document)
	run := s.start(s.home, id, map[string]string{"topic": "A secret topic"})
	s.work()
	return run
}

// Links are off until an owner allows them; then they show how far a run is and nothing of
// what it is about, until they are ended, expire, or are forbidden again.
func TestALinkToARunShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.secretRun()
	path := s.at("runs", run.ID.String(), "share")
	builder, owner, outsider := s.in(tenants.Builder), s.in(tenants.Owner), s.visitor()
	builder.get(path).is(http.StatusOK).says("gives no links to its runs", "Only an owner can let people outside look at runs")
	builder.post(path, "days", "7", formKeyName, "k1").is(http.StatusForbidden)
	builder.post(path, "allow", "yes").is(http.StatusForbidden)
	s.in(tenants.Admin).post(path, "allow", "yes").is(http.StatusForbidden)
	owner.post(path, "allow", "yes").is(http.StatusSeeOther)
	builder.post(path, "days", "7").is(http.StatusBadRequest)
	for range 2 {
		builder.post(path, "days", "7", formKeyName, "k1").is(http.StatusSeeOther)
	}
	page := builder.get(path).is(http.StatusOK)
	links := page.all("form", "method", "post")
	var link string
	for _, word := range strings.Fields(page.text()) {
		if strings.HasPrefix(word, siteURL+sharedRoot) {
			require.Empty(t, link, "the same form makes one link")
			link = strings.TrimPrefix(word, siteURL)
		}
	}
	require.NotEmpty(t, link)
	shown := outsider.get(link).is(http.StatusOK).says("Ask the reviewer", "Under way", hostile).hides("secret topic", "reviewer.", "<img")
	require.Equal(t, "noindex, nofollow", shown.header.Get("X-Robots-Tag"))
	require.Equal(t, "no-referrer", shown.header.Get("Referrer-Policy"))
	require.Empty(t, shown.all("form", "method", "post"), "there is nothing to do on it")
	outsider.get(link + "x").is(http.StatusNotFound).says("opens nothing any more")
	outsider.get(sharedRoot + "x").is(http.StatusNotFound)

	var end string
	for _, form := range links {
		if strings.HasSuffix(attr(form, "action"), "/end") {
			end = attr(form, "action")
		}
	}
	owner.post(path, "allow", "no").is(http.StatusSeeOther)
	outsider.get(link).is(http.StatusNotFound)
	owner.post(path, "allow", "yes").is(http.StatusSeeOther)
	outsider.get(link).is(http.StatusOK)
	builder.post(end).is(http.StatusSeeOther)
	builder.post(end).is(http.StatusSeeOther)
	outsider.get(link).is(http.StatusNotFound)
	builder.post(path, "days", "9999", formKeyName, "k2").is(http.StatusSeeOther)
	var days int
	require.NoError(t, s.db.Super(t).QueryRow(t.Context(), `SELECT max(extract(day FROM expires_at - created_at))::int FROM run_shares`).Scan(&days))
	require.Equal(t, 90, days)
	_, err := s.db.Super(t).Exec(t.Context(), `UPDATE run_shares SET expires_at = now()`)
	require.NoError(t, err)
	builder.get(path).is(http.StatusOK).says("There is none.")
	require.NotContains(t, s.log.String(), strings.TrimPrefix(link, sharedRoot), "no log has a link")
}

// A run is taken away with all of its values; who may not see money gets no amounts.
func TestARunIsDownloadedWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.secretRun()
	read := func(role tenants.Role) (map[string]string, map[string]any) {
		answer := s.in(role).get(s.at("runs", run.ID.String(), "download")).is(http.StatusOK)
		require.Contains(t, answer.header.Get("Content-Disposition"), "attachment")
		raw := []byte(answer.body)
		archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
		require.NoError(t, err)
		files := map[string]string{}
		for _, file := range archive.File {
			require.NotContains(t, file.Name, "..")
			reader, err := file.Open()
			require.NoError(t, err)
			content, err := io.ReadAll(reader)
			require.NoError(t, err)
			files[file.Name] = string(content)
		}
		var all map[string]any
		require.NoError(t, json.Unmarshal([]byte(files["run.json"]), &all))
		return files, all
	}
	files, all := read(tenants.Owner)
	input := all["run"].(map[string]any)["input"].(string)
	require.JSONEq(t, `{"topic": "A secret topic"}`, files[input])
	steps := all["steps"].([]any)
	require.Len(t, steps, 1)
	require.Equal(t, "Ask the reviewer", steps[0].(map[string]any)["name"])
	require.Contains(t, steps[0], "cost_micro_usd")
	_, all = read(tenants.Reviewer)
	require.NotContains(t, all["steps"].([]any)[0], "cost_micro_usd")
}
