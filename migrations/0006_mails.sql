-- +goose Up

-- The outbox: a mail is a row first, queued in the transaction that has a reason for
-- it. data holds what the body is composed from, never a link or a code: those are
-- derived at the moment of sending. A mail without a tenant is the system's own, such
-- as a sign-in code, and no tenant sees it. message_id is fixed here, so that a mail
-- which had to be sent twice is one mail to whoever receives it.
CREATE TABLE mails (
    tenant_id   uuid REFERENCES tenants (id),
    id          uuid PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('review_request', 'login_code', 'step')),
    run_id      uuid,
    step_run_id uuid,
    seat_id     uuid,
    generation  integer NOT NULL DEFAULT 0,
    to_address  text NOT NULL,
    to_name     text NOT NULL DEFAULT '',
    subject     text NOT NULL,
    data        jsonb NOT NULL,
    message_id  text NOT NULL UNIQUE,
    state       text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
    attempt     integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    worker_id   uuid,
    claimed_at  timestamptz,
    sent_at     timestamptz,
    last_error  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    next_try_at timestamptz NOT NULL DEFAULT now(),
    give_up_at  timestamptz NOT NULL,
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id),
    CHECK ((sent_at IS NOT NULL) = (state = 'sent')),
    CHECK ((kind = 'login_code') = (tenant_id IS NULL)),
    CHECK (kind <> 'step' OR step_run_id IS NOT NULL),
    CHECK ((kind = 'review_request') = (seat_id IS NOT NULL))
);
CREATE UNIQUE INDEX mails_one_a_step ON mails (tenant_id, step_run_id) WHERE kind = 'step';
CREATE UNIQUE INDEX mails_one_a_seat ON mails (tenant_id, seat_id, kind, generation) WHERE seat_id IS NOT NULL;
CREATE INDEX mails_of_step ON mails (tenant_id, step_run_id) WHERE step_run_id IS NOT NULL;
CREATE INDEX mails_newest ON mails (tenant_id, id DESC);
CREATE INDEX mails_of_worker ON mails (worker_id) WHERE state = 'sending';
CALL protect_tenant_table('mails',
    'SELECT, INSERT, UPDATE (state, attempt, worker_id, claimed_at, sent_at, last_error, next_try_at)',
    'SELECT, INSERT, UPDATE (state, attempt, worker_id, claimed_at, sent_at, last_error, next_try_at)');
