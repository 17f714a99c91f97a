-- +goose Up

-- Values: exact bytes, once a tenant, by the SHA-256 of their content. Small ones are
-- kept in the row, larger ones in chunks of 1 MiB. No foreign key points here: two
-- runs with the same answer would queue on the shared row. run_values tells which run
-- needs which value, and clean-up asks it.
CREATE TABLE stored_values (
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    digest     bytea NOT NULL CHECK (octet_length(digest) = 32),
    size       bigint NOT NULL CHECK (size >= 0),
    media_type text NOT NULL,
    content    bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, digest)
);
CALL protect_tenant_table('stored_values', 'SELECT, INSERT');

CREATE TABLE stored_value_chunks (
    tenant_id uuid NOT NULL,
    digest    bytea NOT NULL,
    number    integer NOT NULL,
    content   bytea NOT NULL,
    PRIMARY KEY (tenant_id, digest, number),
    FOREIGN KEY (tenant_id, digest) REFERENCES stored_values (tenant_id, digest)
);
CALL protect_tenant_table('stored_value_chunks', 'SELECT, INSERT');

CREATE TABLE runs (
    tenant_id     uuid NOT NULL REFERENCES tenants (id),
    id            uuid NOT NULL,
    pipeline_id   uuid NOT NULL,
    version       integer NOT NULL,
    number        bigint NOT NULL,
    name          text NOT NULL,
    state         text NOT NULL CHECK (state IN ('running', 'pausing', 'paused', 'cancelling', 'completed', 'failed', 'cancelled')),
    priority      smallint NOT NULL DEFAULT 2 CHECK (priority BETWEEN 1 AND 4),
    sample        boolean NOT NULL DEFAULT false,
    input_digest  bytea NOT NULL,
    result_digest bytea,
    failure       jsonb,
    started_by    uuid REFERENCES users (id),
    start_key     text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    ended_at      timestamptz,
    ended_by      text NOT NULL DEFAULT '',
    changed       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, pipeline_id, number),
    UNIQUE (tenant_id, start_key),
    FOREIGN KEY (tenant_id, pipeline_id, version) REFERENCES pipeline_versions (tenant_id, pipeline_id, number),
    CHECK ((ended_at IS NOT NULL) = (state IN ('completed', 'failed', 'cancelled')))
);
CREATE INDEX runs_newest ON runs (tenant_id, id DESC);
CREATE INDEX runs_of_pipeline ON runs (tenant_id, pipeline_id, id DESC);
CREATE INDEX runs_by_state ON runs (tenant_id, state, id DESC);
CREATE INDEX runs_open ON runs (tenant_id, id) WHERE ended_at IS NULL;
CALL protect_tenant_table('runs', 'SELECT, INSERT, UPDATE', 'SELECT');

CREATE TABLE run_values (
    tenant_id uuid NOT NULL,
    digest    bytea NOT NULL,
    run_id    uuid NOT NULL,
    PRIMARY KEY (tenant_id, digest, run_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CALL protect_tenant_table('run_values', 'SELECT, INSERT');

-- One row for each execution of a step; groups are parents of what runs inside them.
-- This tree is the state, the history and the timeline at once. turn numbers the item
-- or round that a nested row belongs to, list names the branch it is on.
CREATE TABLE step_runs (
    tenant_id     uuid NOT NULL,
    id            uuid NOT NULL,
    run_id        uuid NOT NULL,
    parent_id     uuid,
    step_id       text NOT NULL,
    kind          text NOT NULL,
    list          text NOT NULL DEFAULT '',
    turn          integer NOT NULL DEFAULT 0,
    state         text NOT NULL CHECK (state IN ('running', 'waiting', 'done', 'failed', 'skipped', 'cancelled')),
    attempt       integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    fence         bigint NOT NULL DEFAULT 0,
    slice_id      uuid,
    worker_id     uuid,
    chosen        text NOT NULL DEFAULT '',
    input_digest  bytea,
    output_digest bytea,
    failure       jsonb,
    note          text NOT NULL DEFAULT '',
    cost_micros   bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT now(),
    begun_at      timestamptz NOT NULL DEFAULT now(),
    ended_at      timestamptz,
    changed       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE NULLS NOT DISTINCT (tenant_id, run_id, step_id, parent_id, turn), -- in this order it finds a step's outputs, too
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, parent_id) REFERENCES step_runs (tenant_id, id),
    CHECK ((ended_at IS NULL) = (state IN ('running', 'waiting')))
);
CREATE INDEX step_runs_open ON step_runs (tenant_id, run_id) WHERE state IN ('running', 'waiting');
CREATE INDEX step_runs_of_slice ON step_runs (slice_id) WHERE state IN ('running', 'waiting');
CREATE INDEX step_runs_changed ON step_runs (tenant_id, run_id, changed);
CALL protect_tenant_table('step_runs', 'SELECT, INSERT, UPDATE', 'SELECT');

-- One row for each ended try of a step that reached outside.
CREATE TABLE attempts (
    tenant_id   uuid NOT NULL,
    step_run_id uuid NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    outcome     text NOT NULL CHECK (outcome IN ('done', 'failed', 'interrupted', 'cancelled')),
    began_at    timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL DEFAULT now(),
    failure     jsonb,
    note        text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, step_run_id, number),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id)
);
CALL protect_tenant_table('attempts', 'SELECT, INSERT');

-- A durable promise to wake a step run. At most one is open for each.
CREATE TABLE waits (
    tenant_id   uuid NOT NULL,
    id          uuid NOT NULL,
    run_id      uuid NOT NULL,
    step_run_id uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('time', 'event', 'review', 'child', 'slot', 'cap', 'pause', 'retry')),
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'expired', 'cancelled')),
    due_at      timestamptz,
    reason      text NOT NULL DEFAULT '',
    output_digest bytea,
    failure     jsonb,
    opened_at   timestamptz NOT NULL DEFAULT now(),
    closed_at   timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id),
    CHECK ((closed_at IS NULL) = (state = 'open'))
);
CREATE UNIQUE INDEX waits_open ON waits (tenant_id, step_run_id) WHERE state = 'open';
CREATE INDEX waits_due ON waits (due_at) WHERE state = 'open' AND due_at IS NOT NULL;
CREATE INDEX waits_of_run ON waits (tenant_id, run_id, id);
CREATE INDEX waits_at_cap ON waits (tenant_id, id) WHERE state = 'open' AND kind = 'cap';
CALL protect_tenant_table('waits', 'SELECT, INSERT, UPDATE', 'SELECT');

-- The branches of runs that can go forward now. A slice is born when there is work,
-- carries one branch through its ready steps in a River job, and is deleted when the
-- branch waits or ends; its fence grows with each hand-over, so that a worker which was
-- given up can change nothing any more.
CREATE TABLE slices (
    tenant_id     uuid NOT NULL,
    id            uuid NOT NULL,
    run_id        uuid NOT NULL,
    step_run_id   uuid,
    wait_id       uuid,
    state         text NOT NULL CHECK (state IN ('ready', 'dispatched', 'running')),
    fence         bigint NOT NULL DEFAULT 1,
    job_id        bigint,
    worker_id     uuid,
    semantics     integer NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    dispatched_at timestamptz,
    claimed_at    timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id)
);
CREATE INDEX slices_of_run ON slices (tenant_id, run_id);
CREATE INDEX slices_of_worker ON slices (worker_id) WHERE state = 'running';
CREATE INDEX slices_dispatched ON slices (dispatched_at) WHERE state = 'dispatched';
CALL protect_tenant_table('slices', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT');

-- Every working process, told alive by its beat.
CREATE TABLE workers (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    semantics  integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    beat_at    timestamptz NOT NULL DEFAULT now(),
    stopped_at timestamptz
);
CREATE INDEX workers_alive ON workers (beat_at) WHERE stopped_at IS NULL;
CALL protect_system_table('workers', 'SELECT, INSERT, UPDATE, DELETE');
