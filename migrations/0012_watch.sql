-- +goose Up

-- What the watchdog found: one row for each thing that stood still in one way, counted
-- when it is found again, so that something it cannot mend does not fill the table.
-- subject_id is the step run, slice or whatever else stood still within the run. No
-- foreign key points to a run: a finding may be about a job whose run is gone.
CREATE TABLE watch_findings (
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    id          uuid NOT NULL,
    kind        text NOT NULL,
    run_id      uuid,
    subject_id  uuid,
    times       integer NOT NULL DEFAULT 1 CHECK (times > 0),
    repaired    boolean NOT NULL, -- the last time
    error       text NOT NULL DEFAULT '', -- why it was not
    worker      text NOT NULL, -- which found it last
    first_at    timestamptz NOT NULL DEFAULT now(),
    last_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE NULLS NOT DISTINCT (tenant_id, kind, run_id, subject_id)
);
CREATE INDEX watch_findings_newest ON watch_findings (last_at DESC);
CREATE INDEX watch_findings_of_run ON watch_findings (tenant_id, run_id, last_at);
CALL protect_tenant_table('watch_findings', 'SELECT', 'SELECT, INSERT, UPDATE, DELETE');
