-- +goose Up

-- A finished AI step put to another model, to compare: it changes nothing in its run. Its
-- cost counts as a test. A row is a job of its own: queued, made by one worker, and done.
CREATE TABLE replays (
    tenant_id     uuid NOT NULL,
    id            uuid NOT NULL,
    run_id        uuid NOT NULL,
    step_run_id   uuid NOT NULL,
    model         text NOT NULL,
    state         text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed')),
    not_before    timestamptz NOT NULL DEFAULT now(),
    worker_id     uuid,
    hold_id       uuid,
    started_by    uuid,
    started_name  text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    began_at      timestamptz,
    ended_at      timestamptz,
    output_digest bytea,
    failure       jsonb,
    note          text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id),
    CHECK ((ended_at IS NOT NULL) = (state IN ('done', 'failed')))
);
CREATE INDEX replays_of_step ON replays (tenant_id, step_run_id, id);
CREATE INDEX replays_open ON replays (not_before) WHERE state IN ('queued', 'running');
CALL protect_tenant_table('replays', 'SELECT, INSERT, UPDATE', 'SELECT (tenant_id, id, state, not_before, worker_id)');
