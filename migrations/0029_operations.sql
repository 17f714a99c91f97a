-- +goose Up

-- Tries that were made before somebody had the step tried again: its rule for retries
-- begins anew behind them.
ALTER TABLE step_runs ADD COLUMN earlier_tries integer CHECK (earlier_tries > 0);

-- The run that a rerun was made from, and the step from which it does things again. A key
-- of a start counts for 30 days; then it is taken from the run.
ALTER TABLE runs
    ADD COLUMN reopened integer NOT NULL DEFAULT 0, -- how often somebody let it go on after it had failed
    ADD COLUMN origin_run uuid,
    ADD COLUMN origin_step text NOT NULL DEFAULT '',
    ALTER COLUMN start_key DROP NOT NULL,
    ADD CONSTRAINT runs_origin_fkey FOREIGN KEY (tenant_id, origin_run) REFERENCES runs (tenant_id, id);
CREATE INDEX runs_of_origin ON runs (tenant_id, origin_run, id) WHERE origin_run IS NOT NULL;
CREATE INDEX runs_keyed ON runs (created_at) WHERE start_key IS NOT NULL;

-- Steps of a rerun that send nothing, since the original has sent it. What the original's
-- step gave, where it gave one thing, is what theirs gives.
CREATE TABLE run_suppressed (
    tenant_id     uuid NOT NULL,
    run_id        uuid NOT NULL,
    step_id       text NOT NULL,
    output_digest bytea,
    PRIMARY KEY (tenant_id, run_id, step_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CALL protect_tenant_table('run_suppressed', 'SELECT, INSERT');
