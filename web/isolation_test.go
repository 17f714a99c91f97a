package web

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tollgate/app/engine"
	"tollgate/app/pipeline"
	"tollgate/app/review"
	"tollgate/billing/ledger"
	"tollgate/tenants"
)

// things are one of everything that an address can name, in one workspace. A route with
// a new kind of parameter needs an entry here.
func things(s *site, in workspace) map[string]string {
	s.t.Helper()
	id := s.publish(in, askingDocument("Secret plan"))
	run := s.start(in, id, map[string]string{"topic": "secret topic of " + in.Name})
	s.work()
	found := map[string]string{
		"tenant": in.ID.String(), "pipeline": id.String(), "run": run.ID.String(), "digest": run.Input.String(), "slug": "customer-mail",
	}
	found["at"] = "plan_" + tenants.NewID[int]().Short()
	s.inTx(in.ID, func(ctx context.Context, tx tenants.Tx) error {
		draft := askingDocument("Secret plan")
		draft.Steps[0].ID = found["at"]
		require.NoError(s.t, pipeline.SaveDraft(ctx, tx, id, draft, in.people[tenants.Builder].User.ID))
		progress, err := engine.ProgressOf(ctx, tx, run.ID)
		require.NoError(s.t, err)
		found["step"] = progress.Steps[0].ID.String()
		found["replay"] = s.insertReplay(run.ID, progress.Steps[0].ID)
		found["group"], found["part"] = s.insertList(run.ID)
		detail, err := s.reviews.ByStepRun(ctx, tx, progress.Steps[0].ID)
		require.NoError(s.t, err)
		found["review"] = detail.ID.String()
		found["token"] = s.secret.SeatToken(detail.Seats[0].ID, detail.Seats[0].Generation)
		mails, err := s.outbox.List(ctx, tx)
		require.NoError(s.t, err)
		found["id"] = mails[0].ID.String()
		bulk, err := s.engine.StartBulk(ctx, tx, engine.BulkPause, engine.Filter{}, in.people[tenants.Builder], "", in.ID.String())
		require.NoError(s.t, err)
		found["bulk"] = bulk.String()
		require.NoError(s.t, engine.AllowShares(ctx, tx, true, in.people[tenants.Owner]))
		require.NoError(s.t, s.engine.ShareRun(ctx, tx, run.ID, time.Hour, in.people[tenants.Owner], "share "+in.ID.String()))
		shares, err := engine.SharesOf(ctx, tx, run.ID)
		require.NoError(s.t, err)
		found["link"], found["share"] = shares[0].ID.String(), s.engine.ShareToken(shares[0].ID)
		sent, err := s.engine.SendEvent(ctx, tx, engine.Event{Name: "secret plan", Data: []byte("1"), Sender: "Secret plan"})
		found["event"] = sent.Event.ID.String()
		secret, secretErr := tenants.AddSecret(ctx, tx, s.web.vault, tenants.NewSecretValue{Name: "Secret plan", Value: "secret topic"}, in.people[tenants.Owner])
		require.NoError(s.t, secretErr)
		found["secret"] = secret.String()
		found["place"] = "pipeline-" + id.String()
		change := ledger.Change{Cap: &ledger.CapChange{Place: ledger.OfPipeline(ledger.PipelineID(id)), Funds: ledger.Real}}
		request, requestErr := ledger.Ask(ctx, tx, change, "secret topic", in.ID.String(), in.people[tenants.Builder])
		require.NoError(s.t, requestErr)
		found["request"] = request.String()
		one := 3 * ledger.Dollar
		price, priceErr := ledger.AddPrice(ctx, tx, ledger.PriceForm{Model: "acme/secret-plan", Rates: ledger.RateForm{Input: &one, Output: &one}}.Price(), "", in.people[tenants.Owner].User.ID)
		require.NoError(s.t, priceErr)
		found["price"] = price.String()
		key, keyErr := tenants.AddProviderKey(ctx, tx, s.web.vault, tenants.NewProviderKey{Provider: "openai", Value: "secret-topic"}, in.people[tenants.Owner])
		require.NoError(s.t, keyErr)
		found["key"] = key.String()
		found["callback"] = strings.TrimPrefix(s.engine.Callbacks.Address(in.ID, run.ID, engine.StepRunID{}, "ask"), siteURL+engine.CallbackPath)
		return err
	})
	return found
}

// insertReplay adds a replay of a step, whose pipeline asks no model.
func (s *site) insertReplay(run engine.RunID, step engine.StepRunID) (replay string) {
	s.t.Helper()
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `
		INSERT INTO replays (tenant_id, id, run_id, step_run_id, model, started_name)
		SELECT tenant_id, gen_random_uuid(), id, $2, 'secret/plan', 'Secret plan' FROM runs WHERE id = $1 RETURNING id::text`, run, step).Scan(&replay))
	return replay
}

// insertList adds a list with one item to a run, whose pipeline does not have one.
func (s *site) insertList(run engine.RunID) (group, part string) {
	s.t.Helper()
	require.NoError(s.t, s.db.Super(s.t).QueryRow(s.t.Context(), `
		WITH list AS (
			INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, ended_at)
			SELECT tenant_id, gen_random_uuid(), id, 'list', 'each', 'done', now() FROM runs WHERE id = $1 RETURNING *
		)
		INSERT INTO step_runs (tenant_id, id, run_id, parent_id, step_id, kind, list, state, ended_at)
		SELECT tenant_id, gen_random_uuid(), run_id, id, 'list', 'item', 'steps', 'done', now() FROM list RETURNING parent_id::text, id::text`, run).Scan(&group, &part))
	return group, part
}

var paramForm = regexp.MustCompile(`:([a-z]+)`)

// address fills a route's pattern.
func address(t *testing.T, r route, values map[string]string) string {
	t.Helper()
	return paramForm.ReplaceAllStringFunc(r.Path, func(param string) string {
		require.Contains(t, values, param[1:], "%s: give the parameter %s an entry in things", r.Path, param)
		return url.PathEscape(values[param[1:]])
	})
}

// send asks for a route with a method of its own, and for changes with an empty form.
func send(b *browser, r route, path string) *page {
	if r.Method == http.MethodGet {
		return b.get(path)
	}
	return b.post(path)
}

func TestNobodyReachesAnotherWorkspace(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode, breaksAll)
	ours, theirs := things(s, s.home), things(s, s.workspace("Other house"))
	owner := s.in(tenants.Owner)
	// Everything of theirs under their own workspace, and each thing of theirs under ours.
	for _, r := range s.web.table {
		if !r.inWorkspace() {
			continue
		}
		send(owner, r, address(t, r, theirs)).is(http.StatusNotFound).hides("Secret plan", "secret topic")
		for _, param := range paramForm.FindAllStringSubmatch(r.Path, -1) {
			if name := param[1]; name != "tenant" && name != "slug" {
				mixed := withOne(ours, name, theirs[name])
				send(owner, r, address(t, r, mixed)).is(http.StatusNotFound)
				send(owner, r, address(t, r, withOne(ours, name, "not-an-id"))).is(http.StatusNotFound)
				send(owner, r, address(t, r, withOne(ours, name, tenants.NewID[int]().String()))).is(http.StatusNotFound)
			}
		}
	}
}

func withOne(values map[string]string, name, value string) map[string]string {
	changed := map[string]string{}
	for key, old := range values {
		changed[key] = old
	}
	changed[name] = value
	return changed
}

func TestTheSignedOutAreSentToSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode, breaksAll)
	ours := things(s, s.home)
	for _, r := range s.web.table {
		if !r.Who.signedIn {
			continue
		}
		path := address(t, r, ours)
		p := send(s.visitor(), r, path).is(http.StatusSeeOther)
		next := path
		if r.Method != http.MethodGet {
			next = "/"
			if r.inWorkspace() {
				next = s.at()
			}
		}
		require.Equal(t, "/signin?next="+url.QueryEscape(next), p.header.Get("Location"), r.Name)
	}
}

// Whoever's role is not enough is told so, and whom to ask, whatever else is wrong.
func TestRolesAreKeptOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t, inLocalMode, breaksAll)
	ours := things(s, s.home)
	for _, role := range tenants.Roles() {
		b := s.in(role)
		for _, r := range s.web.table {
			if !r.inWorkspace() || role.May(r.Who.action) {
				continue
			}
			send(b, r, address(t, r, ours)).is(http.StatusForbidden).says("Only an owner", "Ask ")
		}
	}
}

func TestTheMapIsSound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	names := map[string]bool{}
	for _, r := range s.web.table {
		require.NotContains(t, names, r.Name, "names are unique")
		names[r.Name] = true
		require.Equal(t, r.inWorkspace(), r.Who.action != "", "%s: pages of a workspace, and only they, say what a member must be allowed", r.Path)
		require.Contains(t, []string{http.MethodGet, http.MethodPost}, r.Method)
		require.False(t, strings.HasSuffix(r.Path, "/") && r.Path != "/")
		require.Positive(t, r.maxBody)
		require.Positive(t, r.patience)
	}
}

// The engine's and the review room's own errors about unknown ids are the pages' 404.
func TestUnknownIDsAreNotFound(t *testing.T) {
	t.Parallel()
	for _, err := range []error{engine.ErrNoRun, engine.ErrNoValue, engine.ErrNoEvent, engine.ErrNoBulk, review.ErrNotFound, review.ErrUnknownLink, tenants.ErrNotMember} {
		require.Equal(t, http.StatusNotFound, problemOf(err).status, err)
	}
}
