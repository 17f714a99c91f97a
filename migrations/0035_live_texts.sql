-- +goose Up

-- What models are writing just now, for people who watch. It is for looking at only: what
-- counts is the answer, which is kept elsewhere, so that nothing here has to survive a
-- crash. A row goes when its call has ended, and at the latest some minutes later.
CREATE UNLOGGED TABLE live_texts (
    tenant_id   uuid NOT NULL,
    step_run_id uuid NOT NULL, -- no foreign key: a table that survives a crash less may name one that does not
    run_id      uuid NOT NULL,
    attempt     integer NOT NULL,
    text        text NOT NULL,
    written_at  timestamptz NOT NULL DEFAULT now(),
    changed     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (tenant_id, step_run_id)
);
CREATE INDEX live_texts_of_run ON live_texts (tenant_id, run_id);
CREATE INDEX live_texts_old ON live_texts (written_at);
CALL protect_tenant_table('live_texts', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT (tenant_id, step_run_id, written_at), DELETE');
