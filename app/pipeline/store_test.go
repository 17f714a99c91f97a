package pipeline_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/migrations/dbtest"
	"tollgate/tenants"
)

// house is one test's database with a tenant in it.
type house struct {
	*testing.T
	db     *dbtest.Database
	tenant tenants.ID
	owner  tenants.UserID
}

func open(t *testing.T) house {
	db := dbtest.Open(t)
	tenant, owner := db.Tenant(t)
	return house{t, db, tenant, owner}
}

// in runs fn as the house's tenant.
func (h house) in(fn func(ctx context.Context, tx tenants.Tx) error) error {
	h.Helper()
	return h.db.InTx(h.Context(), h.tenant, fn)
}

// created makes a pipeline of a small document.
func (h house) created(d pipeline.Document) pipeline.ID {
	h.Helper()
	var id pipeline.ID
	require.NoError(h, h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
		id, err = pipeline.Create(ctx, tx, d, "", h.owner)
		return err
	}))
	return id
}

func (h house) published(id pipeline.ID) int {
	h.Helper()
	var number int
	require.NoError(h, h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
		number, err = pipeline.Publish(ctx, tx, id, "why", h.owner)
		return err
	}))
	return number
}

func (h house) version(id pipeline.ID, number int) pipeline.Version {
	h.Helper()
	var v pipeline.Version
	require.NoError(h, h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
		v, err = pipeline.VersionByNumber(ctx, tx, id, number)
		return err
	}))
	return v
}

func small(name, formula string) pipeline.Document {
	return pipeline.Document{Semantics: pipeline.Semantics, Name: name, Steps: []pipeline.Step{{
		ID: "sum", Name: "Sum", Kind: pipeline.KindSet,
		With: &pipeline.Set{Values: []pipeline.Value{{Name: "x", Formula: formula}}},
	}}}
}

func TestVersionsStayWhatWasPublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	require.Equal(t, 1, h.published(id))
	require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) error {
		return pipeline.SaveDraft(ctx, tx, id, small("Sum, better", "2"), h.owner)
	}))
	require.Equal(t, 2, h.published(id))

	first, second := h.version(id, 1), h.version(id, 2)
	require.Equal(t, string(small("Sum", "1").JSON()), string(first.Document.JSON()))
	require.Equal(t, string(small("Sum, better", "2").JSON()), string(second.Document.JSON()))
	require.Equal(t, "why", first.Note)
	require.Equal(t, h.owner, first.PublishedBy)
	require.Same(t, first.Program, h.version(id, 1).Program, "the program is compiled once")

	require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) error {
		p, err := pipeline.ByID(ctx, tx, id)
		require.NoError(t, err)
		require.Equal(t, "Sum, better", p.Name)
		require.Equal(t, 2, p.Live)
		all, err := pipeline.List(ctx, tx)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return nil
	}))
	for _, change := range []string{
		`UPDATE pipeline_versions SET document = '{}'`, `UPDATE pipeline_versions SET number = 9`, `DELETE FROM pipeline_versions`,
	} {
		err := h.in(func(ctx context.Context, tx tenants.Tx) error {
			_, err := tx.Exec(ctx, change)
			return err
		})
		require.ErrorContains(t, err, "permission denied", change)
	}
}

func TestAnotherTenantGetsNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Secret", "1"))
	h.published(id)
	h.version(id, 1) // now in the cache of compiled versions

	stranger := h
	stranger.tenant, stranger.owner = h.db.Tenant(t)
	for what, call := range map[string]func(ctx context.Context, tx tenants.Tx) error{
		"read": func(ctx context.Context, tx tenants.Tx) error { _, err := pipeline.ByID(ctx, tx, id); return err },
		"version": func(ctx context.Context, tx tenants.Tx) error {
			_, err := pipeline.VersionByNumber(ctx, tx, id, 1)
			return err
		},
		"save": func(ctx context.Context, tx tenants.Tx) error {
			return pipeline.SaveDraft(ctx, tx, id, small("Mine", "2"), stranger.owner)
		},
		"publish": func(ctx context.Context, tx tenants.Tx) error {
			_, err := pipeline.Publish(ctx, tx, id, "", stranger.owner)
			return err
		},
	} {
		require.ErrorIs(t, stranger.in(call), pipeline.ErrNotFound, what)
	}
	require.NoError(t, stranger.in(func(ctx context.Context, tx tenants.Tx) error {
		batch := &tenants.Batch{}
		live := pipeline.QueueLive(batch, tx.Tenant, id)
		require.NoError(t, tx.Send(ctx, batch))
		require.False(t, live.Found)
		return nil
	}))
	require.True(t, tenants.IsLostRace(stranger.in(func(ctx context.Context, tx tenants.Tx) error {
		batch := &tenants.Batch{}
		pipeline.QueueRunNumbers(batch, tx.Tenant, id, 1)
		return tx.Send(ctx, batch)
	})))
	require.NoError(t, stranger.in(func(ctx context.Context, tx tenants.Tx) error {
		all, err := pipeline.List(ctx, tx)
		require.Empty(t, all)
		return err
	}))
	require.Equal(t, "Secret", h.version(id, 1).Document.Name)
}

func TestRolledBackVersionIsForgotten(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	stop := errors.New("changed my mind")
	err := h.in(func(ctx context.Context, tx tenants.Tx) error {
		number, err := pipeline.Publish(ctx, tx, id, "", h.owner)
		require.NoError(t, err)
		v, err := pipeline.VersionByNumber(ctx, tx, id, number)
		require.NoError(t, err)
		require.Equal(t, "1", v.Program.Node("sum").Set().Values[0].Formula.Source())
		return stop
	})
	require.ErrorIs(t, err, stop)
	require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) error {
		return pipeline.SaveDraft(ctx, tx, id, small("Sum", "2"), h.owner)
	}))
	require.Equal(t, 1, h.published(id))
	require.Equal(t, "2", h.version(id, 1).Program.Node("sum").Set().Values[0].Formula.Source())
}

func TestDraftsMayBeUnfinishedButNotNameless(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{"", "  ", "Hi\r\nBcc: x@evil.example", "a\x00b"} {
		err := h.in(func(ctx context.Context, tx tenants.Tx) error {
			_, err := pipeline.Create(ctx, tx, small(name, "1"), "", h.owner)
			return err
		})
		var bad *pipeline.Invalid
		require.ErrorAs(t, err, &bad, "%q", name)
	}
	id := h.created(small("<img src=x onerror=alert(1)>", "1 +"))
	err := h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.Publish(ctx, tx, id, "", h.owner)
		return err
	})
	var bad *pipeline.Invalid
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "sum", bad.Problems[0].Step)
	err = h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.VersionByNumber(ctx, tx, id, 1)
		return err
	})
	require.ErrorIs(t, err, pipeline.ErrNotFound)
}

func TestRunsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	for want := int64(1); want <= 3; want++ {
		require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) error {
			batch := &tenants.Batch{}
			pipeline.QueueRunNumbers(batch, tx.Tenant, id, 1)
			require.NoError(t, tx.Send(ctx, batch))
			counted, err := pipeline.ByID(ctx, tx, id)
			require.EqualValues(t, want, counted.Runs)
			return err
		}))
	}
}

func TestOneBrokenDraftLeavesTheListWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	good, bad := h.created(small("Good", "1")), h.created(small("Bad", "1"))
	_, err := h.db.Super(t).Exec(t.Context(), `UPDATE pipelines SET draft = '{"steps": 7' WHERE id = $1`, bad)
	require.NoError(t, err)
	require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) error {
		all, err := pipeline.List(ctx, tx)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Error(t, all[0].Unread)
		require.Equal(t, "Bad", all[0].Draft.Name)
		require.NoError(t, all[1].Unread)
		require.Equal(t, good, all[1].ID)
		_, err = pipeline.Publish(ctx, tx, bad, "", h.owner)
		require.ErrorContains(t, err, "not JSON that can be read")
		return nil
	}))
}

// A pipeline that runs others is published only where these are.
func TestPublishKnowsThePipelinesThatAreRun(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, user := db.Tenant(t)
	other, stranger := db.Tenant(t)
	create := func(tenant tenants.ID, by tenants.UserID, publish bool) (id pipeline.ID) {
		require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
			var err error
			if id, err = pipeline.Create(ctx, tx, small("Called", "1"), "", by); err != nil || !publish {
				return err
			}
			_, err = pipeline.Publish(ctx, tx, id, "", by)
			return err
		}))
		return id
	}
	here, unpublished, elsewhere := create(tenant, user, true), create(tenant, user, false), create(other, stranger, true)
	for called, want := range map[string]string{
		here.String(): "", unpublished.String(): "warning with.pipeline: ", elsewhere.String(): "not in this workspace", "odd": "does not say which pipeline to run",
		here.String() + " 1": "", here.String() + " 7": "has no version 7",
	} {
		calling := small("Calling", "1")
		child := &pipeline.Child{Pipeline: strings.Fields(called)[0]}
		if fields := strings.Fields(called); len(fields) > 1 {
			child.Version, _ = strconv.Atoi(fields[1])
		}
		calling.Steps = []pipeline.Step{{ID: "call", Name: "Call", Kind: pipeline.KindChild, With: child}}
		require.NoError(t, db.InTx(t.Context(), tenant, func(ctx context.Context, tx tenants.Tx) error {
			problems, err := pipeline.CheckIn(ctx, tx, calling)
			switch {
			case want == "":
				require.Empty(t, problems, called)
			case strings.HasPrefix(want, "warning"):
				require.Len(t, problems, 1)
				require.Equal(t, pipeline.Warning, problems[0].Severity)
			default:
				require.Len(t, pipeline.Blocking(problems), 1, called)
				require.Contains(t, problems[0].Message, want)
			}
			return err
		}))
	}
}
