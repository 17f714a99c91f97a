-- +goose Up

-- Groups hold rows of their own for each turn: a loop a "round", a list an "item", work
-- side by side a "lane". An item that no lane has taken yet is queued; the slice that
-- has claimed it stands in slice_id. score is an exact decimal, of a round or lane its
-- own, of a loop that of its best round so far, whose number stands in chosen.
ALTER TABLE step_runs
    DROP CONSTRAINT step_runs_state_check,
    DROP CONSTRAINT step_runs_check,
    ADD CONSTRAINT step_runs_state_check CHECK (state IN ('queued', 'running', 'waiting', 'done', 'failed', 'skipped', 'cancelled')),
    ADD CONSTRAINT step_runs_ended CHECK ((ended_at IS NULL) = (state IN ('queued', 'running', 'waiting'))),
    ADD COLUMN score text NOT NULL DEFAULT '';

-- Finds the open rows of a run, and those of one group in their order.
DROP INDEX step_runs_open;
CREATE INDEX step_runs_open ON step_runs (tenant_id, run_id, parent_id, turn) WHERE state IN ('queued', 'running', 'waiting');
-- Finds what is in a group, ended or not.
CREATE INDEX step_runs_in_group ON step_runs (tenant_id, parent_id, turn) WHERE parent_id IS NOT NULL;

-- A slice that is ready waits for a slot, one that is paused for its run. window_id is
-- the list whose "at once" it counts towards.
ALTER TABLE slices
    DROP CONSTRAINT slices_state_check,
    ADD CONSTRAINT slices_state_check CHECK (state IN ('ready', 'dispatched', 'running', 'paused')),
    ADD COLUMN window_id uuid,
    ADD CONSTRAINT slices_window_fkey FOREIGN KEY (tenant_id, window_id) REFERENCES step_runs (tenant_id, id);
CREATE INDEX slices_of_window ON slices (tenant_id, window_id) WHERE window_id IS NOT NULL;
