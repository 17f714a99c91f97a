-- +goose Up

-- Runs that a step of another run started. root_run is the run at the top of the tree and
-- depth how many are above; tells_parent that the step waits for the end and has not been
-- told of it. All indexes are partial: runs that nobody's step started have no entry.
ALTER TABLE runs
    ADD COLUMN parent_run      uuid,
    ADD COLUMN parent_step_run uuid,
    ADD COLUMN root_run        uuid,
    ADD COLUMN depth           smallint NOT NULL DEFAULT 0,
    ADD COLUMN tells_parent    boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT runs_parentage CHECK ((parent_run IS NULL) = (parent_step_run IS NULL) AND (parent_run IS NULL) = (root_run IS NULL)
        AND (parent_run IS NULL) = (depth = 0) AND (parent_run IS NOT NULL OR NOT tells_parent)),
    ADD CONSTRAINT runs_parent_fkey FOREIGN KEY (tenant_id, parent_run) REFERENCES runs (tenant_id, id),
    ADD CONSTRAINT runs_parent_step_fkey FOREIGN KEY (tenant_id, parent_step_run) REFERENCES step_runs (tenant_id, id);
CREATE INDEX runs_of_step ON runs (tenant_id, parent_step_run) WHERE parent_step_run IS NOT NULL;
CREATE INDEX runs_of_root ON runs (tenant_id, root_run) WHERE root_run IS NOT NULL;
CREATE INDEX runs_to_tell ON runs (tenant_id, id) WHERE tells_parent AND ended_at IS NOT NULL;

-- A wait for a run that was cancelled is cascaded once that run was cancelled as well.
ALTER TABLE waits
    DROP CONSTRAINT waits_state_check,
    ADD CONSTRAINT waits_state_check CHECK (state IN ('open', 'done', 'expired', 'cancelled', 'cascaded'));
CREATE INDEX waits_to_cascade ON waits (tenant_id, id) WHERE kind = 'child' AND state = 'cancelled';
