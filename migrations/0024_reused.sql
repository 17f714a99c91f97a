-- +goose Up

-- The step run, of this run or an older one, whose output was taken over instead of
-- doing the step again. No foreign key: every step would pay for its check, and the row
-- that is named may be cleaned up before the one that names it.
ALTER TABLE step_runs ADD COLUMN reused_from uuid;

-- What was taken over was not tried here.
CREATE OR REPLACE VIEW tries WITH (security_invoker = true) AS
    SELECT tenant_id, step_run_id, number, outcome, began_at, ended_at, failure, note FROM attempts
    UNION ALL
    SELECT s.tenant_id, s.id, s.attempt, 'done', s.begun_at, s.ended_at, NULL, s.note FROM step_runs s
    WHERE s.state = 'done' AND s.input_digest IS NOT NULL AND s.kind <> 'item' AND s.reused_from IS NULL
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.tenant_id = s.tenant_id AND a.step_run_id = s.id AND a.number = s.attempt);
