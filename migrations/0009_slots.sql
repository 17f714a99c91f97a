-- +goose Up

-- How much of the installation a tenant may use at once. Without a row the defaults of
-- package tenants hold.
CREATE TABLE tenant_quotas (
    tenant_id       uuid PRIMARY KEY REFERENCES tenants (id),
    parallel_slices integer NOT NULL CHECK (parallel_slices > 0),
    open_runs       integer NOT NULL CHECK (open_runs > 0),
    changed_at      timestamptz NOT NULL DEFAULT now()
);
CALL protect_tenant_table('tenant_quotas', 'SELECT, INSERT, UPDATE', 'SELECT');

-- When each tenant was last given a slot: whoever was not served for longest is next.
CREATE TABLE tenant_turns (
    tenant_id uuid PRIMARY KEY REFERENCES tenants (id),
    served_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CALL protect_tenant_table('tenant_turns', 'SELECT', 'SELECT, INSERT, UPDATE');

-- A run whose pipeline takes no more at once is queued: it has no slice yet.
ALTER TABLE runs
    DROP CONSTRAINT runs_state_check,
    ADD CONSTRAINT runs_state_check CHECK (state IN ('queued', 'running', 'pausing', 'paused', 'cancelling', 'completed', 'failed', 'cancelled'));
CREATE INDEX runs_open_of_pipeline ON runs (tenant_id, pipeline_id, id) WHERE ended_at IS NULL;
CREATE INDEX runs_queued ON runs (tenant_id, pipeline_id, id) WHERE state = 'queued';
CREATE INDEX runs_pausing ON runs (tenant_id, id) WHERE state = 'pausing';

-- How many slices of a list's window may go at once; only on the list's own row.
ALTER TABLE step_runs ADD COLUMN at_once integer CHECK (at_once > 0);

-- Ready slices in the order in which a tenant's are served. One whose window is full is
-- crowded: it waits for its window, and must not be looked at again and again.
ALTER TABLE slices
    ADD COLUMN priority smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 1 AND 4),
    ADD COLUMN ready_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN crowded boolean NOT NULL DEFAULT false,
    SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
CREATE INDEX slices_ready ON slices (tenant_id, priority, ready_at, id) WHERE state = 'ready' AND NOT crowded;
CREATE INDEX slices_crowded ON slices (tenant_id, window_id, priority, ready_at, id) WHERE state = 'ready' AND crowded;
CREATE INDEX slices_in_flight ON slices (tenant_id, window_id) WHERE state IN ('dispatched', 'running');
GRANT UPDATE (state, dispatched_at, crowded) ON slices TO tollgate_system;

-- How many slices a worker drives at once.
ALTER TABLE workers ADD COLUMN slots integer NOT NULL DEFAULT 0 CHECK (slots >= 0);
