package engine

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// suppressedIn are the steps of a rerun that send nothing, with what they give instead.
func suppressedIn(ctx context.Context, tx tenants.Tx, run Run) (map[string]Digest, error) {
	if run.Origin.IsZero() {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `SELECT step_id, output_digest FROM run_suppressed WHERE tenant_id = $1 AND run_id = $2`, tx.Tenant, run.ID)
	silent := map[string]Digest{}
	var step string
	var gives []byte
	_, err := pgx.ForEachRow(rows, []any{&step, &gives}, func() error {
		silent[step] = digestFrom(gives)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what a run does not send again: %w", err)
	}
	return silent, nil
}

// leaveOut passes over a step that sends nothing, since the original of its run has.
func (d *decider) leaveOut(node *pipeline.Node, group *frame, gives Digest) error {
	row := d.newRow(node, group, StepSkipped)
	row.Note, row.Output = "not sent again: the run that this one was made from has sent it", gives
	output := value{digest: gives}
	entry := insertStep{row: row}
	if gives.IsZero() {
		output = value{bytes: []byte(`{}`)}
		entry.output = output.bytes
	}
	d.add(entry)
	d.know(place{frame: group.id(), step: node.ID()}, foundRow(row, output))
	return d.after(node, group)
}
