-- +goose Up

-- What was sent in a workspace, kept for 30 days. A run that waits for a name and a key
-- takes the oldest event with both that was sent since it began and that it has not used
-- yet; one event serves many runs, each once. sender_id is the sender's own number for
-- it: a second event of the same name and number is the first one again. An event for
-- which more runs wait than its own transaction served is spreading until all are.
CREATE TABLE events (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    id        uuid NOT NULL,
    name      text NOT NULL CHECK (length(name) BETWEEN 1 AND 120),
    key       text NOT NULL CHECK (length(key) <= 200),
    data      bytea NOT NULL CHECK (octet_length(data) <= 262144),
    sent_at   timestamptz NOT NULL,
    sender    text NOT NULL CHECK (length(sender) BETWEEN 1 AND 200),
    sender_id text NOT NULL DEFAULT '' CHECK (length(sender_id) <= 200),
    spreading boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX events_for_waits ON events (tenant_id, name, key, sent_at, id);
CREATE INDEX events_by_name ON events (tenant_id, name, id);
CREATE INDEX events_by_age ON events (sent_at);
CREATE INDEX events_spreading ON events (tenant_id, id) WHERE spreading;
CREATE UNIQUE INDEX events_of_sender ON events (tenant_id, name, sender_id) WHERE sender_id <> '';
CALL protect_tenant_table('events', 'SELECT, INSERT, UPDATE (spreading), DELETE', 'SELECT (tenant_id, id, name, key, sent_at, spreading)');

-- Which run used which event, at which step. The uses go with their event.
CREATE TABLE event_uses (
    tenant_id   uuid NOT NULL,
    event_id    uuid NOT NULL,
    run_id      uuid NOT NULL,
    step_run_id uuid NOT NULL,
    used_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, event_id, run_id),
    FOREIGN KEY (tenant_id, event_id) REFERENCES events (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id)
);
CREATE INDEX event_uses_of_step ON event_uses (tenant_id, step_run_id);
CALL protect_tenant_table('event_uses', 'SELECT, INSERT');

-- What an event wait waits for; the oldest wait is served first.
ALTER TABLE waits
    ADD COLUMN event_name text NOT NULL DEFAULT '',
    ADD COLUMN event_key text NOT NULL DEFAULT '',
    ADD CONSTRAINT waits_for_a_name CHECK ((kind = 'event') = (event_name <> ''));
CREATE INDEX waits_for_event ON waits (tenant_id, event_name, event_key, opened_at, id) WHERE state = 'open' AND kind = 'event';
