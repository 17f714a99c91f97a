package engine

// renew begins the position's step again, in the row that it has: it had failed, or was
// stopped when another one failed.
func (d *decider) renew() error {
	node, group := d.program.Node(d.step.StepID), d.frames(d.groups)
	return d.begin(d.listIn(group), node.Index, group)
}

// renews tells the row of the step that is begun again.
func (d *decider) renews(row StepRun) bool {
	return d.outcome.kind == renewed && row.ID == d.step.ID
}
