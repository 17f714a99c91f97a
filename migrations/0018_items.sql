-- +goose Up

-- The items of a list that nobody has taken on, in their order.
CREATE INDEX step_runs_untaken ON step_runs (tenant_id, parent_id, turn) WHERE state = 'queued' AND slice_id IS NULL;
-- The items that a slice has taken on and not begun.
CREATE INDEX step_runs_taken ON step_runs (slice_id) WHERE state = 'queued' AND slice_id IS NOT NULL;
-- The items of a list that failed.
CREATE INDEX step_runs_lost ON step_runs (tenant_id, parent_id, turn) WHERE state = 'failed';
