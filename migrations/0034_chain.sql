-- +goose Up

-- Where a step stands in its chain of models: which model is asked, how often it was asked
-- anew because its answer could not be used, and what the next call is told. Null is the
-- beginning, and all there is of other kinds of steps.
ALTER TABLE step_runs ADD COLUMN chain jsonb;

-- Which model a try asked, at which place of the chain and for the how-manieth time anew,
-- what followed from it in plain words, and what went out and came in, as far as the step
-- says that this is kept.
ALTER TABLE attempts
    ADD COLUMN model text NOT NULL DEFAULT '',
    ADD COLUMN place integer NOT NULL DEFAULT 0,
    ADD COLUMN reask integer NOT NULL DEFAULT 0,
    ADD COLUMN followed text NOT NULL DEFAULT '',
    ADD COLUMN sent_digest bytea,
    ADD COLUMN received_digest bytea;

CREATE OR REPLACE VIEW tries WITH (security_invoker = true) AS
    SELECT tenant_id, step_run_id, number, outcome, began_at, ended_at, failure, note,
        model, place, reask, followed, sent_digest, received_digest FROM attempts
    UNION ALL
    SELECT s.tenant_id, s.id, s.attempt, 'done', s.begun_at, s.ended_at, NULL, s.note, '', 0, 0, '', NULL, NULL FROM step_runs s
    WHERE s.state = 'done' AND s.input_digest IS NOT NULL AND s.kind <> 'item' AND s.reused_from IS NULL
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.tenant_id = s.tenant_id AND a.step_run_id = s.id AND a.number = s.attempt);

-- A wait before a call that was not made, because a limit of ours left no room for it. It
-- is one of kind 'retry', which older programs know how to wake, and uses up no try.
ALTER TABLE waits ADD COLUMN uncalled boolean NOT NULL DEFAULT false;
