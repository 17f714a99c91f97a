-- +goose Up

-- Changes of money that wait for a person: a cap that somebody asks to raise, or a change
-- that a second person must confirm. change says what would be set. first_by is whoever
-- may set caps and agreed first, where two must. What was decided stays as it is.
CREATE TABLE money_requests (
    tenant_id  uuid NOT NULL REFERENCES tenants (id),
    id         uuid NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('cap', 'price', 'settings')),
    change     jsonb NOT NULL,
    reason     text NOT NULL,
    asked_by   uuid NOT NULL REFERENCES users (id),
    asked_at   timestamptz NOT NULL DEFAULT now(),
    form_key   text NOT NULL,
    first_by   uuid REFERENCES users (id),
    state      text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'granted', 'declined', 'withdrawn')),
    decided_by uuid REFERENCES users (id),
    decided_at timestamptz,
    note       text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, asked_by, form_key),
    CHECK ((decided_at IS NULL) = (state = 'open'))
);
CREATE INDEX money_requests_open ON money_requests (tenant_id, id) WHERE state = 'open';
CALL protect_tenant_table('money_requests', 'SELECT, INSERT, UPDATE (first_by, change, state, decided_by, decided_at, note)');

-- How a workspace handles its money; no row means the defaults. Above second_above micros
-- a cap needs two people, and so does every price; null means that one is enough.
CREATE TABLE money_settings (
    tenant_id    uuid NOT NULL PRIMARY KEY REFERENCES tenants (id),
    second_above micros,
    turn_asks    boolean NOT NULL DEFAULT true,
    run_cap      micros,
    set_by       uuid REFERENCES users (id),
    set_at       timestamptz NOT NULL DEFAULT now()
);
CALL protect_tenant_table('money_settings', 'SELECT, INSERT, UPDATE');

-- A step that a cap stopped may wait for a person's word although there is room again.
ALTER TABLE waits ADD COLUMN asks_word boolean NOT NULL DEFAULT false;

ALTER TABLE mails DROP CONSTRAINT mails_kind_check;
ALTER TABLE mails ADD CONSTRAINT mails_kind_check
    CHECK (kind IN ('review_request', 'login_code', 'step', 'money_request', 'money_answer', 'spend_alert'));
