-- +goose Up

-- Keys of a workspace's own at providers of models. sealed is encrypted under a key that
-- the database never holds, and bound to the tenant, the row and the address it may be sent
-- to: neither a moved value nor one whose address was changed can be opened. old_* is what a
-- rotation replaced, usable until old_until and then erased. A removed key keeps its row
-- without its value, because charges name it. tested_* tell of the newest test and
-- test_began_at paces tests. limits are calls and tokens a minute by model, "*" for each
-- model without an own entry.
CREATE TABLE provider_keys (
    tenant_id      uuid NOT NULL REFERENCES tenants (id),
    id             uuid NOT NULL,
    provider       text NOT NULL CHECK (provider ~ '^[a-z][a-z0-9_-]{0,29}$'),
    base_url       text NOT NULL DEFAULT '' CHECK (length(base_url) <= 500),
    sealed         bytea,
    key_id         text NOT NULL,
    hint           text NOT NULL DEFAULT '',
    generation     integer NOT NULL DEFAULT 1,
    old_base_url   text NOT NULL DEFAULT '',
    old_sealed     bytea,
    old_key_id     text NOT NULL DEFAULT '',
    old_hint       text NOT NULL DEFAULT '',
    old_until      timestamptz,
    limits         jsonb NOT NULL DEFAULT '{}',
    test_began_at  timestamptz,
    tested_at      timestamptz,
    test_passed    boolean NOT NULL DEFAULT false,
    test_words     text NOT NULL DEFAULT '',
    added_by       text NOT NULL,
    added_at       timestamptz NOT NULL DEFAULT now(),
    rotated_by     text NOT NULL DEFAULT '',
    rotated_at     timestamptz,
    removed_by     text NOT NULL DEFAULT '',
    removed_at     timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((sealed IS NULL) = (removed_at IS NOT NULL)),
    CHECK ((old_sealed IS NULL) = (old_until IS NULL)),
    CHECK (removed_at IS NULL OR old_sealed IS NULL)
);
CREATE UNIQUE INDEX provider_keys_in_use ON provider_keys (tenant_id, provider) WHERE removed_at IS NULL;
CREATE INDEX provider_keys_overlap ON provider_keys (old_until) WHERE old_until IS NOT NULL;
CALL protect_tenant_table('provider_keys', 'SELECT, INSERT, UPDATE');
-- The sweep erases what an overlap left behind; it opens nothing.
CALL open_to_system('provider_keys', 'SELECT (tenant_id, id, old_until), UPDATE (old_base_url, old_sealed, old_key_id, old_hint, old_until)');

-- Model calls and tokens a minute of the whole workspace; 0 is no limit.
ALTER TABLE tenant_quotas
    ADD COLUMN requests_per_minute bigint NOT NULL DEFAULT 0 CHECK (requests_per_minute >= 0),
    ADD COLUMN tokens_per_minute   bigint NOT NULL DEFAULT 0 CHECK (tokens_per_minute >= 0);
