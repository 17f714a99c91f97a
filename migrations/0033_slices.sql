-- +goose Up
-- The table is empty most of the time, and then any index looks as good as another: one
-- that begins with the tenant would be taken for a slice's own key, and gone through.
DROP INDEX slices_of_run;
CREATE INDEX slices_of_run ON slices (run_id);
DROP INDEX slices_of_window;
CREATE INDEX slices_of_window ON slices (window_id) WHERE window_id IS NOT NULL;

-- So does an index of what is open just now, of which there is next to nothing at most
-- times. A slice's own rows are found by the slice, a run's open ones by the run.
DROP INDEX step_runs_of_slice;
DROP INDEX step_runs_taken;
CREATE INDEX step_runs_held ON step_runs (slice_id) WHERE slice_id IS NOT NULL;
DROP INDEX step_runs_open;
CREATE INDEX step_runs_open ON step_runs (run_id, parent_id, turn) WHERE state IN ('queued', 'running', 'waiting');
