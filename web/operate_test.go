package web

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/tenants"
	"tollgate/web/browsertest"
)

// operated fills the installation: a live worker and a silent one, queues, findings of
// every kind of which one could not be mended.
func (s *site) operated() {
	s.t.Helper()
	run := s.start(s.home, s.publish(s.home, askingDocument("Secret plan")), map[string]string{"topic": "secret topic"})
	super := s.db.Super(s.t)
	exec := func(sql string, args ...any) {
		_, err := super.Exec(s.t.Context(), sql, args...)
		require.NoError(s.t, err)
	}
	exec(`INSERT INTO workers (id, name, semantics) VALUES (gen_random_uuid(), 'work-7c9d5fb4b8-with-a-very-long-name-of-its-own-x2v7k 17', 1)`)
	exec(`INSERT INTO workers (id, name, semantics, beat_at) VALUES (gen_random_uuid(), 'silent 4', 1, now() - interval '1 minute')`)
	exec(`UPDATE slices SET state = 'ready', created_at = now() - interval '90 seconds'`)
	for n, kind := range engine.StuckKinds() {
		exec(`INSERT INTO watch_findings (tenant_id, id, kind, run_id, times, repaired, error, worker) VALUES ($1, gen_random_uuid(), $2, $3, $4, $5, $6, 'silent 4')`,
			s.home.ID, kind, run.ID, n+1, n > 0, map[bool]string{true: "", false: "repair a stuck run: <b>permission denied</b>"}[n > 0])
	}
}

// Whoever runs the installation sees its state and of workspaces nothing but names;
// everybody else does not even see that there is such a page.
func TestOperationsAreForOperators(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.web.Operators = []string{s.home.people[tenants.Admin].User.Email}
	s.operated()
	for _, role := range tenants.Roles() {
		page := s.in(role).get(operatePath)
		if role != tenants.Admin {
			page.is(http.StatusNotFound).hides("Workers")
			s.in(role).get(s.at()).is(http.StatusOK).hides(operatePath + `"`)
			continue
		}
		page.is(http.StatusOK).hides("secret topic", "Secret plan", "<b>permission").says("One worker is alive", "Silent", s.home.Name,
			"One branch waits for a slot in 1 workspace, the first for 1 min", "1 could not be mended", "Not mended", "permission denied")
		for _, kind := range engine.StuckKinds() {
			page.says(stuckWords(kind).title)
		}
		s.in(role).get(s.at()).is(http.StatusOK).says("Operations")
	}
}

func TestOperationsWithNothingToSee(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.web.Operators = []string{s.home.people[tenants.Admin].User.Email}
	s.in(tenants.Admin).get(operatePath).is(http.StatusOK).says("No worker is alive, so nothing runs", "Nothing waits for a slot", "Nothing stood still")
}

// Each kind that the watchdog finds is explained, with what to do about it.
func TestEveryKindOfStuckIsExplained(t *testing.T) {
	t.Parallel()
	for _, kind := range engine.StuckKinds() {
		text := stuckTexts[kind]
		require.NotEmpty(t, text.title, "give %q its words in operate_words.go", kind)
		require.NotEmpty(t, text.seen, kind)
		require.NotEmpty(t, text.mended, kind)
		require.NotEmpty(t, text.advice, kind)
	}
	require.Equal(t, "Newer kind", stuckWords("newer_kind").title)
	require.Len(t, stuckTexts, len(engine.StuckKinds()), fmt.Sprint(engine.StuckKinds()))
}

func TestTheLookOfOperations(t *testing.T) {
	t.Parallel()
	chromium := browsertest.Start(t)
	s := listen(t)
	s.web.Operators = []string{tenants.DemoOwner}
	s.operated()
	for _, view := range browsertest.Views {
		t.Run(view.String(), func(t *testing.T) {
			t.Parallel()
			p := chromium.Open(t, view)
			become(p, s, tenants.Owner)
			p.Go(s.web.origin + operatePath)
			p.Shot("operations")
			p.Check(t)
		})
	}
}
