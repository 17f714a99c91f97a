-- +goose Up

-- Stops a batch of statements when a guarded change did not meet exactly one row.
-- SQLSTATE TG001 is read by tenants.IsLostRace.
-- +goose StatementBegin
CREATE FUNCTION require_one(n bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF n <> 1 THEN
        RAISE EXCEPTION 'a guarded change met % rows', n USING ERRCODE = 'TG001';
    END IF;
END $$;
-- +goose StatementEnd

-- Puts a table under forced row-level security: the app role sees and writes rows of
-- the tenant that the transaction named, nothing else, and the system role only what
-- is granted here. The setting is read in a sub-select so that it is evaluated once a
-- statement, and an unset or emptied setting matches no row instead of failing.
-- +goose StatementBegin
CREATE PROCEDURE protect_tenant_table(target regclass, app_grants text, system_grants text DEFAULT '', tenant_column text DEFAULT 'tenant_id')
LANGUAGE plpgsql AS $$
DECLARE
    own text := format('%I = (SELECT nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', tenant_column);
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant_rows ON %s TO tollgate_app USING (%s) WITH CHECK (%s)', target, own, own);
    EXECUTE format('GRANT %s ON %s TO tollgate_app', app_grants, target);
    CALL open_to_system(target, system_grants);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE PROCEDURE open_to_system(target regclass, system_grants text)
LANGUAGE plpgsql AS $$
BEGIN
    IF system_grants <> '' THEN
        EXECUTE format('CREATE POLICY system_rows ON %s TO tollgate_system USING (true) WITH CHECK (true)', target);
        EXECUTE format('GRANT %s ON %s TO tollgate_system', system_grants, target);
    END IF;
END $$;
-- +goose StatementEnd

-- A table that only cross-tenant work may touch, such as sign-in.
-- +goose StatementBegin
CREATE PROCEDURE protect_system_table(target regclass, system_grants text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    CALL open_to_system(target, system_grants);
END $$;
-- +goose StatementEnd

CREATE TABLE tenants (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    zone       text NOT NULL DEFAULT 'UTC',
    demo       boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CALL protect_tenant_table('tenants', 'SELECT, UPDATE', 'SELECT, INSERT', 'id');

CREATE TABLE users (
    id         uuid PRIMARY KEY,
    email      text NOT NULL UNIQUE CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 320),
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    zone       text NOT NULL DEFAULT '', -- '' means the workspace's
    created_at timestamptz NOT NULL DEFAULT now()
);
CALL protect_system_table('users', 'SELECT, INSERT, UPDATE');

CREATE TABLE members (
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    user_id    uuid NOT NULL REFERENCES users (id),
    role       text NOT NULL CHECK (role IN ('owner', 'admin', 'builder', 'reviewer', 'finance', 'auditor', 'viewer')),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id);
CALL protect_tenant_table('members', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT');

-- A user is visible to the tenants that she is a member of; members is itself filtered.
CREATE POLICY tenant_people ON users FOR SELECT TO tollgate_app
    USING (EXISTS (SELECT 1 FROM members WHERE members.user_id = users.id));
GRANT SELECT ON users TO tollgate_app;

-- Codes sent to an address to sign in with. The digits are not here: they are derived
-- from the id and the server's secret. Rows are kept for a day to count requests by
-- address and by the network they came from.
CREATE TABLE login_codes (
    id         uuid PRIMARY KEY,
    email      text NOT NULL,
    network    text NOT NULL,
    tries      integer NOT NULL DEFAULT 0 CHECK (tries BETWEEN 0 AND 5),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX login_codes_by_email ON login_codes (email, created_at);
CREATE INDEX login_codes_by_network ON login_codes (network, created_at);
CREATE INDEX login_codes_by_age ON login_codes (created_at);
CALL protect_system_table('login_codes', 'SELECT, INSERT, UPDATE, DELETE');

-- An ended session stays as a row with ended_at until it would have expired, so that a
-- request which was under way cannot bring it back to life by saving it.
CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    user_id    uuid REFERENCES users (id),
    data       bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CALL protect_system_table('sessions', 'SELECT, INSERT, UPDATE, DELETE');

-- Who did what, kept for ever: rows are added, never changed. detail is json, not
-- jsonb, which refuses some texts that people can type.
CREATE TABLE audit_entries (
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    id          uuid NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    actor_kind  text NOT NULL CHECK (actor_kind IN ('member', 'link', 'system')),
    actor_id    uuid,
    actor_name  text NOT NULL,
    action      text NOT NULL,
    target_kind text NOT NULL,
    target_id   uuid,
    detail      json NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_entries_by_target ON audit_entries (tenant_id, target_id, id);
CALL protect_tenant_table('audit_entries', 'SELECT, INSERT', 'INSERT');

-- River's jobs live in their own schema. The app role adds and completes its tenant's
-- jobs, told by the metadata; the system role runs River's client.
GRANT USAGE ON SCHEMA river TO tollgate_app, tollgate_system;
GRANT ALL ON ALL TABLES IN SCHEMA river TO tollgate_system;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA river TO tollgate_app, tollgate_system;
GRANT SELECT, INSERT, UPDATE ON river.river_job TO tollgate_app;
ALTER TABLE river.river_job ENABLE ROW LEVEL SECURITY;
ALTER TABLE river.river_job FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_rows ON river.river_job TO tollgate_app
    USING (metadata ->> 'tenant_id' = (SELECT nullif(current_setting('app.tenant_id', true), '')))
    WITH CHECK (metadata ->> 'tenant_id' = (SELECT nullif(current_setting('app.tenant_id', true), '')));
CREATE POLICY system_rows ON river.river_job TO tollgate_system USING (true) WITH CHECK (true);

-- A process that serves asks whether its tables are those of its release.
GRANT SELECT ON goose_db_version TO tollgate_system;
