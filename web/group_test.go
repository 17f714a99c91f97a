package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// A run's page says of a list how many items stand how, and why some failed; of branches
// side by side what they came to; of a loop how it ended and which round was taken.
func TestGroupsOnTheRunPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.groupsRun("Storm Ylva", 40)
	p := s.in(tenants.Owner).get(s.at("runs", run.String())).is(http.StatusOK).says(
		"4 of 40 items of step 3 “Check each claim” wait for a person; 4 run, 8 have not begun, 4 failed and 20 are done.",
		"Then comes step 4 “Sum it up”",
		"20 done · 4 failed · 4 wait for a person · 4 running · 8 not begun", "Show 4 failed", "Show all 40", "2 × The address is missing.",
		"2 of 3 agree: water", "Result: hail", "its condition held. Round 3 was taken, score 8.5.", "Score 7.5",
	)
	require.True(t, strings.HasPrefix(p.title(), "Waiting: Storm Ylva"), p.title())
	require.Empty(t, p.all("tr", "id", "step-read"), "the steps of items are on the items' pages")
	require.Len(t, p.all("tr", "id", "lane-vote-careful"), 1)
	require.Len(t, p.all("tr", "id", "round-polish-3"), 1)
	require.Len(t, p.all("tr", "id", "step-grade"), 1, "only the newest round is open")
	s.in(tenants.Owner).get(s.at("runs")).is(http.StatusOK).says("4 wait for a person, 4 run.")
}

// The items of a list are listed by page and by how they stand, each with a name that
// people recognise and with where it is; each leads to a page of its own with its steps.
func TestItemsOfAList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.groupsRun("Storm Ylva", 120)
	owner := s.in(tenants.Owner)
	page := owner.get(s.at("runs", run.String())).is(http.StatusOK)
	list := owner.get(linkTo(t, page, "Show all 120")).is(http.StatusOK).says("120 items", "60 done · 12 failed", "NL-2026-00001 · Malerbetrieb Schön · €100.50", "Item 1")
	require.Len(t, list.all("tr", "role", "row"), 1+partsPerPage)
	rest := owner.get(linkTo(t, list, "More items")).is(http.StatusOK).says("NL-2026-00051")
	owner.get(linkTo(t, rest, "More items")).is(http.StatusOK).says("NL-2026-00120", "Back to the first")

	failed := owner.get(linkTo(t, page, "Show 12 failed")).is(http.StatusOK).says("The photo cannot be read", "NL-2026-00006").hides("NL-2026-00001", hostile)
	require.Len(t, failed.all("tr", "role", "row"), 1+12)
	item := owner.get(linkTo(t, failed, "NL-2026-00006 · Malerbetrieb Schön · €105.50")).is(http.StatusOK)
	item.says("Item 6 of step 3 “Check each claim”", "Failed", "The address is missing", "The other items go on; up to 5,000 may fail.", "What this item is about", "€105.50", "Check each claim", "Not reached")
	require.Contains(t, item.title(), "Failed: Item 6")

	asked := owner.get(s.at("runs", run.String(), "groups", idIn(list.path)) + "?state=person").is(http.StatusOK).says("Ask the claims lead")
	inside := owner.get(linkTo(t, asked, "NL-2026-00007 · \u2068عبد الرحمن القحطاني\u2069 · €106.50")).is(http.StatusOK).says("Waiting for", "somebody", "Over €5,000")
	require.NotEmpty(t, inside.all("tr", "id", "step-ask"))
	stream := attr(inside.all("div", "id", "run")[0], "hx-sse:connect")
	require.Contains(t, stream, "part=")
	step := owner.get(linkTo(t, inside, "Read the claim")).is(http.StatusOK).says("Step 3a · Change data")
	require.Contains(t, step.path, "/parts/")

	waiting := owner.get(s.at("runs", run.String(), "groups", idIn(list.path)) + "?state=queued").is(http.StatusOK).says("Begins when it is its turn")
	owner.get(linkTo(t, waiting, "NL-2026-00009 · 🏠 Haus am See · €108.50")).is(http.StatusOK).says("It begins as soon as")
	owner.get(s.at("runs", run.String(), "groups", idIn(list.path)) + "?state=capped").is(http.StatusOK).says("No items here")
	owner.get(s.at("runs", run.String(), "groups", idIn(list.path)) + "?state=%27").is(http.StatusOK).says("No items here")
}

// The address of a step inside an item leads to the item's page.
func TestStepOfAnItemIsFound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.groupsRun("Storm Ylva", 10)
	var step, item string
	require.NoError(t, s.db.Super(t).QueryRow(t.Context(), `SELECT id::text FROM step_runs WHERE run_id = $1 AND step_id = 'ask'`, run).Scan(&step))
	require.NoError(t, s.db.Super(t).QueryRow(t.Context(), `SELECT id::text FROM step_runs WHERE run_id = $1 AND kind = 'item' AND turn = 6`, run).Scan(&item))
	s.in(tenants.Viewer).get(s.at("runs", run.String(), "steps", step)).leadsTo(s.at("runs", run.String(), "parts", item, "steps", step))
	s.in(tenants.Viewer).get(s.at("runs", run.String(), "parts", item, "steps", step)).is(http.StatusOK).says("Ask the claims lead")
	s.in(tenants.Viewer).get(s.at("runs", run.String(), "steps", tenants.NewID[engine.StepRun]().String())).is(http.StatusNotFound)
}

// Rounds and branches have pages, too.
func TestRoundsAndBranchesHavePages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run := s.groupsRun("Storm Ylva", 10)
	b := s.in(tenants.Builder)
	page := b.get(s.at("runs", run.String())).is(http.StatusOK)
	b.get(linkTo(t, page, "Round 1")).is(http.StatusOK).says("Round 1 of step 2 “Write the letter until it is good”", "Done", "Score", "Grade")
	b.get(linkTo(t, page, "Careful model")).is(http.StatusOK).says("Careful model of step 1", "Say the kind, with reasons", "Result of this branch", "water")
}

func TestShortValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		``: "", `null`: "", `{}`: "", `[]`: "0 entries", `[1,2]`: "2 entries", `[1,2`: "A list", `"a  b\nc"`: "a b c", `12.50`: "12.50", `true`: "yes",
		`{"a":"x","b":{"c":1},"d":2,"e":false,"f":"not"}`:                        "x · not · 2",
		`{"amount":"420.00","invoice":"R-1","ordered":"400","supplier":"Schön"}`: "R-1 · Schön · 420.00",
		`{"price":{"amount":1234.5,"currency":"CHF"},"who":"Ana"`:                "Ana · CHF 1,234.5",
		`{"a":"` + strings.Repeat("ä", 60) + `"}`:                                strings.Repeat("ä", 20) + "…",
		`{"long":"cut off in the mid`:                                            "",
		`{"n":123456789012345678901234567890.123456789, "x": "y", "z": "w"`:      "y · w · 123456789012345678901234567890.123456789",
	} {
		require.Equal(t, want, shortValue([]byte(value)), value)
	}
}

// linkTo is the address of the first link with these words.
func linkTo(t *testing.T, p *page, words string) string {
	t.Helper()
	for node := range p.doc.Descendants() {
		if node.Data == "a" && textOf(node) == words {
			return attr(node, "href")
		}
	}
	t.Fatalf("no link %q on %s\n%s", words, p.path, p.text())
	return ""
}

// idIn is the last id in an address.
func idIn(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path[strings.LastIndexByte(path, '/')+1:]
}

func TestTheLookOfGroups(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	run := s.groupsRun("Storm Ylva, batch of 10,000", 240)
	link := func(from, words string) string {
		return linkTo(t, s.in(tenants.Owner).get(from).is(http.StatusOK), words)
	}
	page := s.at("runs", run.String())
	all, failed := link(page, "Show all 240"), link(page, "Show 24 failed")
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			look := func(name, path string) {
				p.Go(s.web.origin + path)
				p.Shot(name)
				p.Check(t)
			}
			look("run-groups", page)
			look("run-group-step", s.at("runs", run.String(), "steps", "claims"))
			look("items", all)
			look("items-failed", failed)
			look("item-failed", link(failed, "NL-2026-00016 · Malerbetrieb Schön · €115.50"))
			look("item-asked", link(all, "NL-2026-00007 · \u2068عبد الرحمن القحطاني\u2069 · €106.50"))
			look("round", link(page, "Round 2"))
		})
	}
}
