-- +goose Up

-- The watchdog looks whether the review that a step waits for is still open.
CALL open_to_system('reviews', 'SELECT (tenant_id, step_run_id, state)');
