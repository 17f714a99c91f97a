-- +goose Up

-- Whether links to runs may be given to people outside; an owner allows it.
CREATE TABLE share_settings (
    tenant_id  uuid PRIMARY KEY REFERENCES tenants (id),
    allowed    boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL DEFAULT now()
);
CALL protect_tenant_table('share_settings', 'SELECT, INSERT, UPDATE');

-- Links to runs. The link itself is derived from the id; only its hash is here.
CREATE TABLE run_shares (
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    id         uuid NOT NULL,
    run_id     uuid NOT NULL,
    token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    by_user    uuid NOT NULL REFERENCES users (id),
    by_name    text NOT NULL,
    form_key   text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, form_key),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CREATE INDEX run_shares_of ON run_shares (tenant_id, run_id, id DESC);
CALL protect_tenant_table('run_shares', 'SELECT, INSERT, UPDATE (ended_at)', 'SELECT (tenant_id, id, token_hash)');
