-- +goose Up

CREATE TABLE pipelines (
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    id           uuid NOT NULL,
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 300),
    template     text NOT NULL DEFAULT '',
    draft        text NOT NULL,
    draft_by     uuid REFERENCES users (id),
    drafted_at   timestamptz NOT NULL DEFAULT now(),
    live_version integer,
    run_count    bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX pipelines_by_name ON pipelines (tenant_id, name, id);
CALL protect_tenant_table('pipelines', 'SELECT, INSERT, UPDATE', 'SELECT');

-- A version is what was published, byte for byte, and never changes: the app role may
-- add and read rows only. Its runs point to it.
CREATE TABLE pipeline_versions (
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    pipeline_id  uuid NOT NULL,
    number       integer NOT NULL CHECK (number > 0),
    document     text NOT NULL,
    digest       bytea NOT NULL CHECK (octet_length(digest) = 32),
    semantics    integer NOT NULL CHECK (semantics > 0),
    note         text NOT NULL DEFAULT '',
    published_by uuid REFERENCES users (id),
    published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, pipeline_id, number),
    FOREIGN KEY (tenant_id, pipeline_id) REFERENCES pipelines (tenant_id, id)
);
CALL protect_tenant_table('pipeline_versions', 'SELECT, INSERT', 'SELECT');

ALTER TABLE pipelines ADD FOREIGN KEY (tenant_id, id, live_version)
    REFERENCES pipeline_versions (tenant_id, pipeline_id, number);
