-- +goose Up

-- What models cost a tenant, beside the prices that a release knows: dated rows, the newest
-- that is valid counts. A row is never changed, only taken out of use, so that charges can
-- name theirs for ever. Rates are micros per million tokens; null means not known, which
-- refuses calls. A call that reads more than long_over tokens costs the long rates.
CREATE TABLE prices (
    tenant_id             uuid NOT NULL REFERENCES tenants (id),
    id                    uuid NOT NULL,
    model                 text NOT NULL CHECK (length(model) BETWEEN 3 AND 200),
    valid_from            timestamptz,
    valid_to              timestamptz CHECK (valid_to > valid_from),
    input                 micros,
    output                micros,
    cache_read            micros,
    cache_write           micros,
    cache_write_long      micros,
    long_over             bigint CHECK (long_over > 0),
    long_input            micros,
    long_output           micros,
    long_cache_read       micros,
    long_cache_write      micros,
    long_cache_write_long micros,
    note                  text NOT NULL DEFAULT '' CHECK (length(note) <= 500),
    set_by                uuid REFERENCES users (id),
    set_at                timestamptz NOT NULL DEFAULT now(),
    retired_at            timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CALL protect_tenant_table('prices', 'SELECT, INSERT, UPDATE (retired_at)');

-- Names under which a provider bills a model that has a price under another.
CREATE TABLE price_aliases (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    billed    text NOT NULL CHECK (length(billed) BETWEEN 3 AND 200),
    model     text NOT NULL CHECK (length(model) BETWEEN 3 AND 200),
    set_by    uuid REFERENCES users (id),
    set_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, billed)
);
CALL protect_tenant_table('price_aliases', 'SELECT, INSERT, UPDATE, DELETE');

-- The instant of the last change of a tenant's prices or aliases, so that whoever has read
-- them sees in one row whether they are the same still. No row: there are none.
CREATE TABLE price_lists (
    tenant_id uuid PRIMARY KEY REFERENCES tenants (id),
    version   bigint NOT NULL
);
CALL protect_tenant_table('price_lists', 'SELECT, INSERT, UPDATE');

-- The row of prices that a call was priced by; null for a price that the release knows.
ALTER TABLE holds ADD COLUMN price_id uuid;
ALTER TABLE charges ADD COLUMN price_id uuid;

-- The functions that write holds and charges are those of 0036, with price_id.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_write(held jsonb) RETURNS holds[] LANGUAGE plpgsql AS $$
DECLARE
    opened holds[];
BEGIN
    WITH made AS (
        INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount, kind, key_id,
            member_id, cost_centre, ancestors, steps, price_input, price_output, price_cache_read, price_cache_write,
            price_cache_write_long, price_id, month_start, day_start, dispatched, started_at, expires_at)
        SELECT t.id, g.id, g.run_id, g.step_run_id, g.attempt,
            (SELECT r.pipeline_id FROM runs r WHERE r.tenant_id = t.id AND r.id = g.run_id), g.model, g.funds, g.payer, g.amount,
            coalesce(g.kind, 'ordinary'), g.key_id, g.member_id, coalesce(g.cost_centre, ''), coalesce(g.ancestors, '{}'),
            coalesce(g.steps, '{}'), g.price_input, g.price_output, g.price_cache_read, g.price_cache_write,
            g.price_cache_write_long, g.price_id, ledger_month(coalesce(g.started_at, now()), t.zone),
            ledger_day(coalesce(g.started_at, now()), t.zone), g.dispatched, coalesce(g.started_at, now()),
            coalesce(g.started_at, now()) + make_interval(secs => (d.document ->> 'lifetime_seconds')::double precision)
        FROM tenants t
        CROSS JOIN (SELECT document FROM jsonb_array_elements(held) AS e (document) LIMIT jsonb_array_length(held)) d
        CROSS JOIN LATERAL jsonb_populate_record(NULL::holds, d.document) g
        WHERE t.id = ledger_tenant()
            AND g.run_id = (SELECT s.run_id FROM step_runs s WHERE s.tenant_id = t.id AND s.id = g.step_run_id)
        RETURNING holds AS whole
    ) SELECT array_agg(whole) INTO opened FROM made;
    PERFORM require_rows(coalesce(cardinality(opened), 0), jsonb_array_length(held));

    IF held @? '$[*].step_limits' THEN
        PERFORM ledger_limit_steps(held);
    END IF;
    RETURN opened;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_write_one(document jsonb) RETURNS holds LANGUAGE plpgsql AS $$
DECLARE
    given holds := jsonb_populate_record(NULL::holds, document);
    h     holds;
BEGIN
    given.started_at := coalesce(given.started_at, now());
    INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount, kind, key_id,
        member_id, cost_centre, ancestors, steps, price_input, price_output, price_cache_read, price_cache_write,
        price_cache_write_long, price_id, month_start, day_start, dispatched, started_at, expires_at)
    SELECT t.id, given.id, given.run_id, given.step_run_id, given.attempt, r.pipeline_id, given.model, given.funds, given.payer,
        given.amount, coalesce(given.kind, 'ordinary'), given.key_id, given.member_id, coalesce(given.cost_centre, ''),
        coalesce(given.ancestors, '{}'), coalesce(given.steps, '{}'), given.price_input, given.price_output,
        given.price_cache_read, given.price_cache_write, given.price_cache_write_long, given.price_id, ledger_month(given.started_at, t.zone),
        ledger_day(given.started_at, t.zone), given.dispatched, given.started_at,
        given.started_at + make_interval(secs => (document ->> 'lifetime_seconds')::double precision)
    FROM tenants t
    JOIN runs r ON r.tenant_id = t.id AND r.id = given.run_id
    JOIN step_runs s ON s.tenant_id = t.id AND s.id = given.step_run_id AND s.run_id = given.run_id
    WHERE t.id = ledger_tenant()
    RETURNING holds.* INTO h;
    IF NOT FOUND THEN
        PERFORM require_one(0);
    END IF;
    IF document ? 'step_limits' THEN
        PERFORM ledger_limit_steps(jsonb_build_array(document));
    END IF;
    RETURN h;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_charge(closed holds[], settled jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id,
        cost_centre, month_start, day_start, model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens,
        cache_write_long_tokens, output_tokens, reasoning_tokens, price_input, price_output, price_cache_read,
        price_cache_write, price_cache_write_long, price_id, reserved_micros, cost_micros, estimated, request_id, finish, latency_ms, started_at)
    SELECT h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.kind, h.key_id, h.member_id,
        h.cost_centre, h.month_start, h.day_start, h.model, coalesce(t.model_billed, ''), coalesce(t.input_tokens, 0),
        coalesce(t.cache_read_tokens, 0), coalesce(t.cache_write_tokens, 0), coalesce(t.cache_write_long_tokens, 0),
        coalesce(t.output_tokens, 0), coalesce(t.reasoning_tokens, 0),
        CASE WHEN t.cost_micros IS NULL THEN h.price_input ELSE t.price_input END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_output ELSE t.price_output END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_read ELSE t.price_cache_read END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_write ELSE t.price_cache_write END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_write_long ELSE t.price_cache_write_long END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_id ELSE t.price_id END,
        h.amount, coalesce(t.cost_micros, h.amount), t.cost_micros IS NULL OR coalesce(t.estimated, false),
        coalesce(t.request_id, ''), coalesce(t.finish, ''), coalesce(t.latency_ms, 0), h.started_at
    FROM unnest(closed) h JOIN jsonb_populate_recordset(NULL::charges, settled) t ON t.hold_id = h.id;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_settle(document jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    told charges := jsonb_populate_record(NULL::charges, document);
    h    holds := ledger_close(told.hold_id, 'settled');
BEGIN
    IF told.cost_micros IS NULL THEN
        told.cost_micros := h.amount;
        told.estimated := true;
        told.price_input := h.price_input;
        told.price_output := h.price_output;
        told.price_cache_read := h.price_cache_read;
        told.price_cache_write := h.price_cache_write;
        told.price_cache_write_long := h.price_cache_write_long;
        told.price_id := h.price_id;
    END IF;
    INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id,
        cost_centre, month_start, day_start, model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens,
        cache_write_long_tokens, output_tokens, reasoning_tokens, price_input, price_output, price_cache_read,
        price_cache_write, price_cache_write_long, price_id, reserved_micros, cost_micros, estimated, request_id, finish, latency_ms, started_at)
    VALUES (h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.kind, h.key_id, h.member_id,
        h.cost_centre, h.month_start, h.day_start, h.model, coalesce(told.model_billed, ''), coalesce(told.input_tokens, 0),
        coalesce(told.cache_read_tokens, 0), coalesce(told.cache_write_tokens, 0), coalesce(told.cache_write_long_tokens, 0),
        coalesce(told.output_tokens, 0), coalesce(told.reasoning_tokens, 0), told.price_input, told.price_output,
        told.price_cache_read, told.price_cache_write, told.price_cache_write_long, told.price_id, h.amount, told.cost_micros,
        coalesce(told.estimated, false), coalesce(told.request_id, ''), coalesce(told.finish, ''),
        coalesce(told.latency_ms, 0), h.started_at);
    PERFORM ledger_move(h, told.cost_micros);
END $$;
-- +goose StatementEnd
