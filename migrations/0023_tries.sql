-- +goose Up

-- The ended tries of steps that reached outside. Most steps end well at their first try,
-- and their row says all there is to say about it, so it has no row of its own: attempts
-- holds what came before, and what ended otherwise.
CREATE VIEW tries WITH (security_invoker = true) AS
    SELECT tenant_id, step_run_id, number, outcome, began_at, ended_at, failure, note FROM attempts
    UNION ALL
    SELECT s.tenant_id, s.id, s.attempt, 'done', s.begun_at, s.ended_at, NULL, s.note FROM step_runs s
    WHERE s.state = 'done' AND s.input_digest IS NOT NULL AND s.kind <> 'item'
        AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.tenant_id = s.tenant_id AND a.step_run_id = s.id AND a.number = s.attempt);
GRANT SELECT ON tries TO tollgate_app;
