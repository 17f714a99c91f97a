package pipeline_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// renames is an edit that gives the pipeline another name.
func (h house) renames(key, name string) pipeline.Edit {
	return pipeline.Edit{Key: key, By: h.owner, Change: func(d pipeline.Document) (pipeline.Document, string, string, error) {
		d.Name = name
		return d, "Renamed it " + name, "sum", nil
	}}
}

func (h house) edit(id pipeline.ID, e pipeline.Edit) {
	h.Helper()
	require.NoError(h, h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.EditDraft(ctx, tx, id, e)
		return err
	}))
}

func (h house) draft(id pipeline.ID) pipeline.Draft {
	h.Helper()
	var d pipeline.Draft
	require.NoError(h, h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
		d, err = pipeline.ReadDraft(ctx, tx, id)
		return err
	}))
	return d
}

func (h house) undo(id pipeline.ID) error {
	return h.in(func(ctx context.Context, tx tenants.Tx) error {
		d, err := pipeline.ReadDraft(ctx, tx, id)
		if err == nil {
			_, err = pipeline.UndoDraft(ctx, tx, id, d.Revision, h.owner)
		}
		return err
	})
}

func (h house) redo(id pipeline.ID) error {
	return h.in(func(ctx context.Context, tx tenants.Tx) error {
		d, err := pipeline.ReadDraft(ctx, tx, id)
		if err == nil {
			_, err = pipeline.RedoDraft(ctx, tx, id, d.Revision, h.owner)
		}
		return err
	})
}

func TestFiftyEditsAreUndoneAndRedone(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("0", "1"))
	for i := 1; i <= 60; i++ {
		h.edit(id, h.renames("k"+strconv.Itoa(i), strconv.Itoa(i)))
	}
	require.Equal(t, "Renamed it 60", h.draft(id).Undo)
	require.Empty(t, h.draft(id).Redo)
	for i := 59; i >= 10; i-- {
		require.NoError(t, h.undo(id))
		require.Equal(t, strconv.Itoa(i), h.draft(id).Name)
		require.Equal(t, strconv.Itoa(i), h.draft(id).Draft.Name)
	}
	require.ErrorContains(t, h.undo(id), "nothing left")
	for i := 11; i <= 60; i++ {
		require.NoError(t, h.redo(id))
		require.Equal(t, strconv.Itoa(i), h.draft(id).Name)
	}
	require.ErrorContains(t, h.redo(id), "nothing left")

	// What was undone is gone once something else is done.
	require.NoError(t, h.undo(id))
	require.Equal(t, "Renamed it 60", h.draft(id).Redo)
	h.edit(id, h.renames("else", "something else"))
	require.Empty(t, h.draft(id).Redo)
	require.NoError(t, h.undo(id))
	require.Equal(t, "59", h.draft(id).Name)
}

func TestAFormEditsOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	add := pipeline.Edit{Key: "one", By: h.owner, Change: func(d pipeline.Document) (pipeline.Document, string, string, error) {
		d, step, err := d.WithStep(pipeline.Place{Index: 1}, pipeline.KindStop, "")
		return d, "Added it", step, err
	}}
	var presses sync.WaitGroup
	steps := make([]string, 6)
	for i := range steps {
		presses.Go(func() {
			require.NoError(t, h.in(func(ctx context.Context, tx tenants.Tx) (err error) {
				steps[i], err = pipeline.EditDraft(ctx, tx, id, add)
				return err
			}))
		})
	}
	presses.Wait()
	for _, step := range steps {
		require.Equal(t, "stop", step)
	}
	require.Len(t, h.draft(id).Draft.Steps, 2)
	require.Equal(t, int64(1), h.draft(id).Revision)
}

// Whoever edits at the same time as others loses nothing: each edit is made to what the
// one before left.
func TestEditsAtTheSameTimeAllCount(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	var people sync.WaitGroup
	for i := range 8 {
		people.Go(func() {
			h.edit(id, pipeline.Edit{Key: "k" + strconv.Itoa(i), By: h.owner, Change: func(d pipeline.Document) (pipeline.Document, string, string, error) {
				d, step, err := d.WithStep(pipeline.Place{Index: 1}, pipeline.KindStop, "")
				return d, "Added it", step, err
			}})
		})
	}
	people.Wait()
	require.Len(t, h.draft(id).Draft.Steps, 9)
	require.Equal(t, int64(8), h.draft(id).Revision)
}

func TestAnEditThatChangesNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	h.edit(id, h.renames("one", "Sum"))
	require.Empty(t, h.draft(id).Undo)
	require.Zero(t, h.draft(id).Revision)
	err := h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.EditDraft(ctx, tx, id, h.renames("two", " "))
		return err
	})
	require.ErrorContains(t, err, "has no name")
	require.Equal(t, "Sum", h.draft(id).Name)
}

func TestUndoIsForTheDraftThatWasSeen(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Sum", "1"))
	h.edit(id, h.renames("one", "One"))
	seen := h.draft(id).Revision
	h.edit(id, h.renames("two", "Two"))
	err := h.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.UndoDraft(ctx, tx, id, seen, h.owner)
		return err
	})
	require.ErrorIs(t, err, pipeline.ErrDraftMoved)
	require.Equal(t, "Two", h.draft(id).Name)
}

func TestDraftsOfOthersAreOutOfReach(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.created(small("Secret", "1"))
	h.edit(id, h.renames("one", "Secret two"))
	stranger := h
	stranger.tenant, stranger.owner = h.db.Tenant(t)
	require.ErrorIs(t, stranger.undo(id), pipeline.ErrNotFound)
	require.ErrorIs(t, stranger.in(func(ctx context.Context, tx tenants.Tx) error {
		_, err := pipeline.EditDraft(ctx, tx, id, stranger.renames("x", "Mine"))
		return err
	}), pipeline.ErrNotFound)
	require.Equal(t, "Secret two", h.draft(id).Name)
}
