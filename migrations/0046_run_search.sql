-- +goose Up

-- What runs can be found by: the values of the fields that their pipelines name, in the
-- form that is compared. Compared by bytes, so that the index serves equality and what a
-- value begins with, under any locale.
CREATE TABLE run_search (
    tenant_id uuid NOT NULL,
    run_id    uuid NOT NULL,
    field     text NOT NULL,
    value     text COLLATE "C" NOT NULL CHECK (value <> '' AND length(value) <= 100),
    PRIMARY KEY (tenant_id, run_id, field),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CREATE INDEX run_search_by_value ON run_search (tenant_id, value, run_id DESC, field);
CALL protect_tenant_table('run_search', 'SELECT, INSERT');

-- Lists of one pipeline by how its runs stand, of runs that no other began, and of those
-- that wait for one kind of thing, stay quick however many runs there are.
CREATE INDEX runs_of_pipeline_by_state ON runs (tenant_id, pipeline_id, state, id DESC) WHERE created_at IS NOT NULL;
CREATE INDEX runs_at_the_top ON runs (tenant_id, state, id DESC) WHERE created_at IS NOT NULL AND parent_run IS NULL;
CREATE INDEX waits_open_by_kind ON waits (tenant_id, kind, run_id) WHERE state = 'open';
