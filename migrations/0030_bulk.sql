-- +goose Up

-- One thing that somebody does to many runs, chosen by a filter when it began.
CREATE TABLE bulk_jobs (
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    id         uuid NOT NULL,
    action     text NOT NULL CHECK (action IN ('retry', 'cancel', 'pause', 'resume', 'rerun')),
    filter     jsonb NOT NULL,
    state      text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'stopped')),
    total      integer NOT NULL CHECK (total >= 0),
    form_key   text NOT NULL,
    by_user    uuid NOT NULL REFERENCES users (id),
    by_name    text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, form_key),
    CHECK ((ended_at IS NULL) = (state = 'running'))
);
CREATE INDEX bulk_jobs_open ON bulk_jobs (tenant_id, id) WHERE state = 'running';
CALL protect_tenant_table('bulk_jobs', 'SELECT, INSERT, UPDATE', 'SELECT (tenant_id, id, state)');

-- The runs of it. words say why one was passed over.
CREATE TABLE bulk_runs (
    tenant_id uuid NOT NULL,
    job_id    uuid NOT NULL,
    run_id    uuid NOT NULL,
    state     text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'refused', 'left')),
    words     text NOT NULL DEFAULT '',
    new_run   uuid,
    done_at   timestamptz,
    PRIMARY KEY (tenant_id, job_id, run_id),
    FOREIGN KEY (tenant_id, job_id) REFERENCES bulk_jobs (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    CHECK ((done_at IS NULL) = (state = 'pending'))
);
CREATE INDEX bulk_runs_pending ON bulk_runs (tenant_id, job_id, run_id) WHERE state = 'pending';
CALL protect_tenant_table('bulk_runs', 'SELECT, INSERT, UPDATE');
