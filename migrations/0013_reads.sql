-- +goose Up

-- What a run waits for, without its closed waits: lists and pages ask it for runs that
-- may have ten thousand of them.
CREATE INDEX waits_open_of_run ON waits (tenant_id, run_id, kind, step_run_id) WHERE state = 'open';
