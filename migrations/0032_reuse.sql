-- +goose Up

-- What steps gave that may be taken again: by the digest of what was asked, until when. A
-- row for each answer, so that two at the same moment meet nowhere; the newest is taken.
CREATE TABLE step_results (
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    key         bytea NOT NULL CHECK (octet_length(key) = 32),
    step_run_id uuid NOT NULL, -- no foreign key: every change of a step run would pay for it
    kept_at     timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key, step_run_id)
);
CREATE INDEX step_results_expired ON step_results (expires_at);
CALL protect_tenant_table('step_results', 'SELECT, INSERT, DELETE', 'SELECT (tenant_id, expires_at)');

-- Runs that take no earlier answers. Few runs are asked to, so it is no column of theirs.
CREATE TABLE fresh_runs (
    tenant_id uuid NOT NULL,
    run_id    uuid NOT NULL,
    PRIMARY KEY (tenant_id, run_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CALL protect_tenant_table('fresh_runs', 'SELECT, INSERT');
