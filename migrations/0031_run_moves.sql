-- +goose Up

-- Each time a run was moved to another version of its pipeline: which version a step was
-- done under is that of the run when it began.
CREATE TABLE run_moves (
    tenant_id    uuid NOT NULL,
    run_id       uuid NOT NULL,
    id           uuid NOT NULL,
    from_version integer NOT NULL,
    to_version   integer NOT NULL CHECK (to_version <> from_version),
    moved_by     uuid REFERENCES users (id),
    moved_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, run_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CALL protect_tenant_table('run_moves', 'SELECT, INSERT');
