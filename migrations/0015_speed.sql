-- +goose Up

-- Fails unless a guarded change of many rows met each of them. Every row of a set is
-- named by its key, so as many rows as names means one row for each name.
-- +goose StatementBegin
CREATE FUNCTION require_rows(met bigint, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF met <> wanted THEN
        RAISE EXCEPTION 'a guarded change met % rows of %', met, wanted USING ERRCODE = 'TG001';
    END IF;
END $$;
-- +goose StatementEnd

-- Where a row is named by its key, the key's index must serve and no other. In a young
-- table, which nobody has analysed yet, the planner takes every index that begins with
-- the tenant for equally good, and the checks of foreign keys keep the plan that was made
-- then: a step would read all rows of its tenant. So the other indexes of the tables that
-- each step meets name in a condition what must be known for them to help.
ALTER TABLE step_runs DROP CONSTRAINT step_runs_tenant_id_run_id_step_id_parent_id_turn_key;
CREATE UNIQUE INDEX step_runs_place ON step_runs (tenant_id, run_id, step_id, parent_id, turn) NULLS NOT DISTINCT
    WHERE run_id IS NOT NULL; -- in this order it finds a step's outputs, too
ALTER TABLE runs
    DROP CONSTRAINT runs_tenant_id_pipeline_id_number_key,
    DROP CONSTRAINT runs_tenant_id_start_key_key;
CREATE UNIQUE INDEX runs_number ON runs (tenant_id, pipeline_id, number) WHERE pipeline_id IS NOT NULL;
CREATE UNIQUE INDEX runs_start_key ON runs (tenant_id, start_key) WHERE start_key IS NOT NULL;
DROP INDEX runs_of_pipeline, runs_by_state, runs_newest, slices_of_run;
CREATE INDEX runs_newest ON runs (tenant_id, id DESC) WHERE created_at IS NOT NULL;
CREATE INDEX runs_of_pipeline ON runs (tenant_id, pipeline_id, id DESC) WHERE pipeline_id IS NOT NULL;
CREATE INDEX runs_by_state ON runs (tenant_id, state, id DESC) WHERE created_at IS NOT NULL;
CREATE INDEX slices_of_run ON slices (tenant_id, run_id) WHERE run_id IS NOT NULL;

-- What changed in a run is told from its open step runs, so that a change of one does
-- not have to be entered into an index each time.
DROP INDEX step_runs_changed;
