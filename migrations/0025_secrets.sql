-- +goose Up

-- Keys and passwords of other systems, which steps use by name. sealed is encrypted under
-- a key that the database never holds, and bound to the tenant and the row: a value that
-- is moved to another row cannot be opened. key_id tells under which server secret it was
-- sealed. hint is what people recognise it by, at most its last characters. hosts are those
-- it may be sent to; none means any.
CREATE TABLE tenant_secrets (
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    id           uuid NOT NULL,
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    sealed       bytea NOT NULL,
    key_id       text NOT NULL,
    hint         text NOT NULL DEFAULT '',
    hosts        text[] NOT NULL DEFAULT '{}',
    added_by     text NOT NULL,
    added_at     timestamptz NOT NULL DEFAULT now(),
    replaced_by  text NOT NULL DEFAULT '',
    replaced_at  timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name)
);
CALL protect_tenant_table('tenant_secrets',
    'SELECT, INSERT, UPDATE (sealed, key_id, hint, hosts, replaced_by, replaced_at), DELETE');
