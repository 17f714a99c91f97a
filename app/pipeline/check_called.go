package pipeline

import (
	"context"
	"errors"

	"tollgate/tenants"
)

// unknownCalls tells of every step that runs a pipeline which the workspace does not have, or
// not in the version that is asked for.
func unknownCalls(ctx context.Context, tx tenants.Tx, d Document) ([]Problem, error) {
	c := checker{doc: &d, tree: grow(&d)}
	for _, n := range c.tree.all {
		with, ok := n.Step.With.(*Child)
		if !ok {
			continue
		}
		if err := c.called(ctx, tx, n, with); err != nil {
			return nil, err
		}
	}
	return c.problems, nil
}

// called tells what is wrong with the pipeline that one step runs.
func (c *checker) called(ctx context.Context, tx tenants.Tx, n *Node, with *Child) error {
	id, err := tenants.ParseID[Pipeline](with.Pipeline)
	if err != nil {
		return nil // Check tells that this is no pipeline
	}
	batch := &tenants.Batch{}
	live := QueueLive(batch, tx.Tenant, id)
	if err := tx.Send(ctx, batch); err != nil {
		return err
	}
	switch {
	case !live.Found:
		c.blocks(n, "with.pipeline", "the pipeline that it runs is not in this workspace. Choose another.")
		return nil
	case live.Version == 0:
		c.warn(n, "with.pipeline", "the pipeline “%s” that it runs is not published yet. Publish it before this one runs.", shown(live.Name))
		return nil
	case with.Version == 0:
		return nil
	}
	if _, err := VersionByNumber(ctx, tx, id, with.Version); !errors.Is(err, ErrNotFound) {
		return err
	}
	c.blocks(n, "with.version", "the pipeline “%s” has no version %d. Choose another, or leave it empty for the newest.", shown(live.Name), with.Version)
	return nil
}
