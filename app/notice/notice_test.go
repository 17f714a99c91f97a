package notice_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"tollgate/app/mail"
	"tollgate/app/notice"
	"tollgate/app/pipeline"
	"tollgate/migrations"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// desk is a workspace with a pipeline that its owner published.
type desk struct {
	t        *testing.T
	db       *dbtest.Database
	room     *notice.Room
	tenant   tenants.ID
	owner    tenants.Membership
	pipeline pipeline.ID
	runs     int
	super    *pgxpool.Pool
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, db: dbtest.Open(t)}
	d.super = d.db.Super(t)
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: migrations.RiverSchema})
	require.NoError(t, err)
	secret, err := tenants.NewSecret(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	outbox, err := mail.New(mail.Config{Sender: mail.Mailbox{}, Inserter: client, From: mail.Address{Email: "no-reply@tollgate.example"}, Links: mail.Links{Secret: secret}})
	require.NoError(t, err)
	d.room = notice.New(notice.Config{DB: d.db.DB, Outbox: outbox, Secret: secret, Host: "https://tollgate.example",
		Path: func(tenant tenants.ID, parts ...string) string {
			return "/w/" + tenant.String() + "/" + strings.Join(parts, "/")
		}})
	d.tenant, d.owner, d.pipeline = d.workspace()
	return d
}

func (d *desk) workspace() (tenants.ID, tenants.Membership, pipeline.ID) {
	d.t.Helper()
	tenant, user := d.db.Tenant(d.t)
	var id pipeline.ID
	var owner tenants.Membership
	d.in(tenant, func(ctx context.Context, tx tenants.Tx) error {
		var err error
		if owner, err = tenants.MemberByUser(ctx, tx, user); err != nil {
			return err
		}
		document := pipeline.Document{Semantics: 1, Name: "Replies", Steps: []pipeline.Step{{
			ID: "draft", Name: "Draft the reply", Kind: pipeline.KindSet, With: &pipeline.Set{Values: []pipeline.Value{{Name: "n", Formula: "1"}}}}}}
		if id, err = pipeline.Create(ctx, tx, document, "", user); err != nil {
			return err
		}
		_, err = pipeline.Publish(ctx, tx, id, "", user)
		return err
	})
	return tenant, owner, id
}

func (d *desk) in(tenant tenants.ID, fn func(context.Context, tenants.Tx) error) {
	d.t.Helper()
	require.NoError(d.t, d.db.InTx(d.t.Context(), tenant, fn))
}

// fail adds runs that failed so long ago.
func (d *desk) fail(runs int, class string, ago time.Duration) {
	d.t.Helper()
	d.exec(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, failure, ended_at)
		SELECT $1, gen_random_uuid(), $2, 1, n, 'Run', 'failed', sha256('{}'), n::text, jsonb_build_object('class', $3::text, 'step_id', 'draft', 'message', 'It costs $9.00.'), now() - $4::interval
		FROM generate_series($5::int + 1, $5::int + $6::int) n`, d.tenant, d.pipeline, class, ago, d.runs, runs)
	d.runs += runs
}

func (d *desk) exec(query string, args ...any) {
	d.t.Helper()
	_, err := d.super.Exec(d.t.Context(), query, args...)
	require.NoError(d.t, err)
}

// look looks as working processes do.
func (d *desk) look() {
	d.t.Helper()
	_, err := d.room.Look(d.t.Context())
	require.NoError(d.t, err)
}

// pass lets time go by for what was noted.
func (d *desk) pass(by time.Duration) {
	d.t.Helper()
	d.exec(`UPDATE notices SET look_at = look_at - $1::interval, told_at = told_at - $1::interval, first_at = first_at - $1::interval, last_at = last_at - $1::interval`, by)
}

func (d *desk) subjects() []string {
	d.t.Helper()
	var all []string
	require.NoError(d.t, d.super.QueryRow(d.t.Context(),
		`SELECT coalesce(array_agg(to_address || ' ' || subject ORDER BY id), '{}') FROM mails WHERE kind = 'notice'`).Scan(&all))
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], d.owner.User.Email+" ")
	}
	return all
}

func TestAPipelinesPeopleAreToldOnceForACause(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fail(3, "timeout", time.Minute)
	d.fail(1, "regulatory_hold", time.Minute)
	d.fail(2, "skipped", time.Minute)
	d.look()
	require.Empty(t, d.subjects(), "what comes at once is waited for")
	d.pass(time.Minute)
	d.fail(2, "timeout", 0)
	d.look()
	d.look()
	require.Equal(t, []string{"Replies: 5 runs failed at “Draft the reply”: the other side did not answer in time, and 1 more"}, d.subjects())
	d.fail(1000, "timeout", 0)
	d.pass(time.Hour)
	d.look()
	require.Len(t, d.subjects(), 1, "no other mail while it lasts")
	d.pass(12 * time.Hour)
	d.look()
	require.Len(t, d.subjects(), 2)
	require.Contains(t, d.subjects()[1], "over: 1,005 runs failed")
	var data string
	require.NoError(t, d.super.QueryRow(t.Context(), `SELECT string_agg(data::text, '') FROM mails`).Scan(&data))
	require.NotContains(t, data, "$9.00", "amounts are not for everybody")
	require.Contains(t, data, `"more": 1000`)
	d.fail(1, "timeout", 0)
	d.look()
	d.pass(time.Hour)
	d.look()
	require.Len(t, d.subjects(), 3, "another trouble is told anew")
}

// Causes that come one after the other are told together, not each at once.
func TestManyCausesAreNoFlood(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 40 {
		d.fail(1, fmt.Sprintf("hold_%d", n), 0)
		d.look()
		d.pass(30 * time.Second)
		d.look()
	}
	require.LessOrEqual(t, len(d.subjects()), 4, "40 causes in 20 minutes")
	d.pass(time.Hour)
	d.look()
	var told int
	require.NoError(t, d.super.QueryRow(t.Context(), `SELECT sum(told_runs) FROM notices`).Scan(&told))
	require.Equal(t, 40, told)
}

// Processes that look at the same moment tell once and count once, and other workspaces hear
// nothing.
func TestManyLooksTellOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	other, _, _ := d.workspace()
	d.fail(20, "timeout", time.Minute)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				_, err := d.room.Look(context.Background())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	d.pass(time.Minute)
	for range 8 {
		all.Go(func() { _, _ = d.room.Look(context.Background()) })
	}
	all.Wait()
	require.Len(t, d.subjects(), 1)
	d.in(d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		lasting, err := notice.Lasting(ctx, tx, d.pipeline)
		require.Len(t, lasting, 1)
		require.Equal(t, 20, lasting[0].Runs)
		return err
	})
	d.in(other, func(ctx context.Context, tx tenants.Tx) error {
		lasting, err := notice.Lasting(ctx, tx, d.pipeline)
		require.Empty(t, lasting)
		_, settingsErr := notice.SettingsOf(ctx, tx, d.pipeline)
		require.ErrorIs(t, settingsErr, pipeline.ErrNotFound)
		return err
	})
}

// Owner and backup are told of what was chosen, unless they left; another system is told too.
func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, stranger, _ := d.workspace()
	save := func(s notice.Settings) error {
		return d.db.InTx(t.Context(), d.tenant, func(ctx context.Context, tx tenants.Tx) error { return notice.Save(ctx, tx, d.pipeline, s, d.owner) })
	}
	for _, wrong := range []notice.Settings{
		{Owner: stranger.User.ID}, {Owner: d.owner.User.ID, Backup: d.owner.User.ID}, {Kinds: []notice.Kind{"odd"}},
		{HookURL: "javascript:alert(1)"}, {HookURL: "https://user:pass@example.com"}, {HookURL: "/x"}, {HookURL: "https://x/" + strings.Repeat("y", 2000)},
	} {
		var invalid *tenants.Invalid
		require.ErrorAs(t, save(wrong), &invalid, "%+v", wrong)
	}
	require.NoError(t, save(notice.Settings{Backup: d.owner.User.ID, Kinds: []notice.Kind{notice.Capped}, HookURL: "https://example.com/hooks"}))
	d.fail(1, "timeout", 0)
	d.look()
	d.pass(time.Minute)
	d.look()
	require.Empty(t, d.subjects(), "nobody asked to be told of it")
	require.NoError(t, save(notice.Settings{Backup: d.owner.User.ID, Kinds: notice.Kinds(), HookURL: "https://example.com/hooks"}))
	d.fail(1, "auth", 0)
	d.look()
	d.pass(time.Hour)
	d.look()
	require.Len(t, d.subjects(), 1)
	var hooks []notice.Hook
	require.NoError(t, d.db.InSystemTx(t.Context(), func(ctx context.Context, tx tenants.SystemTx) error {
		var err error
		hooks, err = d.room.ClaimHooks(ctx, tx, 10)
		again, againErr := d.room.ClaimHooks(ctx, tx, 10)
		require.Empty(t, again)
		require.NoError(t, againErr)
		return err
	}))
	require.Len(t, hooks, 1)
	require.Contains(t, hooks[0].Body, `"type":"runs.failed.begun"`)
	require.Contains(t, hooks[0].Body, `"class":"auth"`)
	heir := tenants.NewID[tenants.User]()
	d.exec(`INSERT INTO users (id, email, name) VALUES ($1, 'heir@example.com', 'Heir')`, heir)
	d.exec(`UPDATE members SET user_id = $2 WHERE tenant_id = $1`, d.tenant, heir)
	d.fail(1, "server", 0)
	d.look()
	d.pass(time.Hour)
	d.look()
	require.Len(t, d.subjects(), 2)
	require.Contains(t, d.subjects()[1], "heir@example.com", "who left is not told; an owner of the workspace is instead")
}

// Runs that wait for the cap or for people who decide about a failure, and those that stand
// still, are in trouble until they are not.
func TestRunsThatWaitAreTroubleUntilTheyGoOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	wait := func(kind string, failure string) {
		d.runs++
		run, step := tenants.NewID[int](), tenants.NewID[int]()
		d.exec(`INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key)
			VALUES ($1, $2, $3, 1, $4, 'Run', 'running', sha256('{}'), $5)`, d.tenant, run, d.pipeline, d.runs, fmt.Sprint(d.runs))
		d.exec(`INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, failure) VALUES ($1, $2, $3, 'draft', 'ai', 'waiting', nullif($4, '')::jsonb)`,
			d.tenant, step, run, failure)
		d.exec(`INSERT INTO waits (tenant_id, id, run_id, step_run_id, kind) VALUES ($1, $2, $2, $3, $4)`, d.tenant, run, step, kind)
		if kind == "review" && failure == "" {
			d.exec(`INSERT INTO watch_findings (tenant_id, id, kind, run_id, repaired, worker) VALUES ($1, $2, 'no_slice', $2, false, 'w')`, d.tenant, run)
		}
	}
	wait("cap", "")
	wait("cap", "")
	wait("review", `{"class": "unsure"}`)
	wait("review", "")
	d.look()
	d.pass(time.Minute)
	d.look()
	require.Len(t, d.subjects(), 1)
	d.in(d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		lasting, err := notice.Lasting(ctx, tx, d.pipeline)
		words := map[notice.Kind]string{}
		for _, n := range lasting {
			words[n.Kind] = n.Words("Draft the reply")
		}
		require.Equal(t, map[notice.Kind]string{
			notice.Capped: "2 runs wait for the AI spend cap", notice.Stuck: "1 run stands still",
			notice.Exception: "1 run waits for somebody to decide at “Draft the reply”, because nobody can tell whether a call arrived",
		}, words)
		return err
	})
	wait("cap", "")
	d.look()
	d.exec(`UPDATE waits SET state = 'done', closed_at = now()`)
	d.exec(`UPDATE watch_findings SET repaired = true`)
	d.pass(time.Hour)
	d.look()
	require.Len(t, d.subjects(), 2)
	require.Contains(t, d.subjects()[1], "over: 3 runs waited for the AI spend cap")
	d.in(d.tenant, func(ctx context.Context, tx tenants.Tx) error {
		lasting, err := notice.Lasting(ctx, tx, d.pipeline)
		require.Empty(t, lasting)
		return err
	})
}
