-- +goose Up

-- What became known of a charge later, as a line of its own: the charge stays as it is.
-- cost_micros and overrun_micros are what is added to what was booked before, and may be
-- below 0; the tokens are those that are known now, all of them. A correction counts in
-- the day and month in which it is booked, so that a month which is over never changes.
CREATE TABLE corrections (
    tenant_id               uuid NOT NULL,
    id                      uuid NOT NULL,
    hold_id                 uuid NOT NULL,
    run_id                  uuid NOT NULL,
    step_run_id             uuid NOT NULL,
    pipeline_id             uuid NOT NULL,
    funds                   text NOT NULL CHECK (funds IN ('real', 'pretend')),
    payer                   text NOT NULL CHECK (payer IN ('own', 'platform')),
    kind                    text NOT NULL CHECK (kind IN ('ordinary', 'test')),
    key_id                  uuid,
    member_id               uuid,
    cost_centre             text NOT NULL,
    model                   text NOT NULL,
    month_start             timestamptz NOT NULL,
    day_start               timestamptz NOT NULL,
    input_tokens            bigint NOT NULL CHECK (input_tokens >= 0),
    cache_read_tokens       bigint NOT NULL CHECK (cache_read_tokens >= 0),
    cache_write_tokens      bigint NOT NULL CHECK (cache_write_tokens >= 0),
    cache_write_long_tokens bigint NOT NULL CHECK (cache_write_long_tokens >= 0),
    output_tokens           bigint NOT NULL CHECK (output_tokens >= 0),
    reasoning_tokens        bigint NOT NULL CHECK (reasoning_tokens >= 0),
    cost_micros             bigint NOT NULL,
    overrun_micros          bigint NOT NULL,
    reason                  text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    set_by                  uuid REFERENCES users (id),
    created_at              timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX corrections_of_hold ON corrections (tenant_id, hold_id);
CREATE INDEX corrections_of_day ON corrections (tenant_id, day_start);
CALL protect_tenant_table('corrections', 'SELECT, INSERT');

-- A month in which more is given back than spent stands below 0.
ALTER TABLE balances DROP CONSTRAINT balances_spent_micros_check, DROP CONSTRAINT balances_check;

-- Books what a charge's call did cost, as it is known now, and returns what that added.
-- Of corrections of one charge each builds on those before.
-- +goose StatementBegin
CREATE FUNCTION ledger_correct(document jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    told    corrections := jsonb_populate_record(NULL::corrections, document);
    total   bigint := (document ->> 'total_micros')::bigint;
    h       holds;
    booked  record;
    place   record;
BEGIN
    PERFORM 1 FROM holds o JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
    WHERE o.tenant_id = ledger_tenant() AND o.id = told.hold_id
    FOR KEY SHARE OF r;
    PERFORM pg_advisory_xact_lock_shared(ledger_lock());
    SELECT * INTO h FROM holds o WHERE o.tenant_id = ledger_tenant() AND o.id = told.hold_id AND o.state = 'settled' FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM require_one(0);
    END IF;
    SELECT c.cost_micros::bigint + coalesce(sum(k.cost_micros), 0) AS cost, c.overrun_micros + coalesce(sum(k.overrun_micros), 0) AS overrun
    INTO booked
    FROM charges c LEFT JOIN corrections k ON k.tenant_id = c.tenant_id AND k.hold_id = c.hold_id
    WHERE c.tenant_id = h.tenant_id AND c.hold_id = h.id
    GROUP BY c.cost_micros, c.overrun_micros;
    told.cost_micros := total - booked.cost;
    told.overrun_micros := greatest(0, total - h.amount::bigint) - booked.overrun;

    SELECT ledger_month(now(), t.zone), ledger_day(now(), t.zone) INTO h.month_start, h.day_start FROM tenants t WHERE t.id = h.tenant_id;
    INSERT INTO corrections (tenant_id, id, hold_id, run_id, step_run_id, pipeline_id, funds, payer, kind, key_id, member_id, cost_centre,
        model, month_start, day_start, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_long_tokens, output_tokens,
        reasoning_tokens, cost_micros, overrun_micros, reason, set_by)
    VALUES (h.tenant_id, told.id, h.id, h.run_id, h.step_run_id, h.pipeline_id, h.funds, h.payer, h.kind, h.key_id, h.member_id, h.cost_centre,
        h.model, h.month_start, h.day_start, coalesce(told.input_tokens, 0), coalesce(told.cache_read_tokens, 0),
        coalesce(told.cache_write_tokens, 0), coalesce(told.cache_write_long_tokens, 0), coalesce(told.output_tokens, 0),
        coalesce(told.reasoning_tokens, 0), told.cost_micros, told.overrun_micros, told.reason, told.set_by);

    FOR place IN SELECT * FROM ledger_counted(h) p ORDER BY p.n, p.scope_id LOOP
        INSERT INTO balances AS b (tenant_id, scope, scope_id, funds, period, period_start, held_micros, spent_micros, overrun_micros)
        VALUES (h.tenant_id, place.scope, place.scope_id, h.funds, place.period, place.period_start, 0, told.cost_micros, told.overrun_micros)
        ON CONFLICT (tenant_id, scope, scope_id, funds, period, period_start)
        DO UPDATE SET spent_micros = b.spent_micros + excluded.spent_micros, overrun_micros = b.overrun_micros + excluded.overrun_micros;
    END LOOP;
    RETURN told.cost_micros;
END $$;
-- +goose StatementEnd

-- What was held and spent at the place of a cap, by period, from since on; as in 0036,
-- with corrections.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_lines(place caps, since timestamptz)
RETURNS TABLE (period_start timestamptz, held bigint, spent bigint, overrun bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT p.period_start, h.amount::bigint, 0::bigint, 0::bigint
        FROM holds h CROSS JOIN LATERAL ledger_places(h) p
        WHERE h.tenant_id = ledger_tenant() AND h.state = 'open' AND h.funds = place.funds
            AND p.scope = place.scope AND p.scope_id = place.scope_id;
    IF place.scope = 'step' THEN
        RETURN QUERY SELECT 'epoch'::timestamptz, 0::bigint, l.cost, l.overrun
            FROM holds h CROSS JOIN LATERAL (
                SELECT c.cost_micros::bigint AS cost, c.overrun_micros AS overrun FROM charges c WHERE c.tenant_id = h.tenant_id AND c.hold_id = h.id
                UNION ALL SELECT k.cost_micros, k.overrun_micros FROM corrections k WHERE k.tenant_id = h.tenant_id AND k.hold_id = h.id) l
            WHERE h.tenant_id = ledger_tenant() AND h.funds = place.funds AND h.steps @> ARRAY[place.scope_id::uuid];
        RETURN;
    END IF;
    RETURN QUERY SELECT CASE place.period WHEN 'day' THEN l.day_start ELSE l.month_start END, 0::bigint, l.cost, l.overrun
        FROM (
            SELECT c.day_start, c.month_start, c.funds, c.cost_centre, c.key_id, c.kind, c.cost_micros::bigint AS cost, c.overrun_micros AS overrun
            FROM charges c WHERE c.tenant_id = ledger_tenant() AND c.day_start >= since
            UNION ALL
            SELECT k.day_start, k.month_start, k.funds, k.cost_centre, k.key_id, k.kind, k.cost_micros, k.overrun_micros
            FROM corrections k WHERE k.tenant_id = ledger_tenant() AND k.day_start >= since
        ) l
        WHERE l.funds = place.funds
            AND CASE place.scope WHEN 'cost_centre' THEN l.cost_centre = place.scope_id
                WHEN 'key' THEN l.key_id::text = place.scope_id
                WHEN 'test' THEN l.kind = 'test'
                ELSE true END;
END $$;
-- +goose StatementEnd

-- What is still to be had at each place that a hold would count in and that has a limit;
-- the hold is as ledger_write takes it, and nothing is written.
-- +goose StatementBegin
CREATE FUNCTION ledger_room(document jsonb)
RETURNS TABLE (scope text, scope_id text, period_start timestamptz, most bigint, available bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    h holds := jsonb_populate_record(NULL::holds, document);
BEGIN
    h.tenant_id := ledger_tenant();
    h.kind := coalesce(h.kind, 'ordinary');
    h.cost_centre := coalesce(h.cost_centre, '');
    h.ancestors := coalesce(h.ancestors, '{}');
    h.steps := coalesce(h.steps, '{}');
    SELECT ledger_month(now(), t.zone), ledger_day(now(), t.zone) INTO h.month_start, h.day_start FROM tenants t WHERE t.id = h.tenant_id;
    SELECT r.pipeline_id INTO h.pipeline_id FROM runs r WHERE r.tenant_id = h.tenant_id AND r.id = h.run_id;
    RETURN QUERY
        SELECT p.scope, p.scope_id, p.period_start, p.most, p.most - coalesce(b.spent_micros + b.held_micros, 0)
        FROM ledger_counted(h) p
        LEFT JOIN balances b ON b.tenant_id = h.tenant_id AND b.scope = p.scope AND b.scope_id = p.scope_id
            AND b.funds = h.funds AND b.period = p.period AND b.period_start = p.period_start
        WHERE p.most IS NOT NULL
        UNION ALL -- limits of steps beneath which nothing was held yet
        SELECT 'step', l.id::text, 'epoch'::timestamptz, l.most, l.most
        FROM jsonb_to_recordset(document -> 'step_limits') AS l (id uuid, most bigint)
        WHERE NOT EXISTS (SELECT FROM caps c WHERE c.tenant_id = h.tenant_id AND c.scope = 'step' AND c.scope_id = l.id::text
            AND c.funds = h.funds AND c.period = 'once');
END $$;
-- +goose StatementEnd

-- What people are told about a cap, once for each of its periods: how much of it is gone,
-- that it will be passed if things go on so, and that it has stopped a run.
CREATE TABLE cap_alerts (
    tenant_id       uuid NOT NULL REFERENCES tenants (id),
    scope           text NOT NULL,
    scope_id        text NOT NULL,
    funds           text NOT NULL CHECK (funds IN ('real', 'pretend')),
    period_start    timestamptz NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('half', 'most', 'all', 'on_course', 'stopped')),
    limit_micros    micros NOT NULL,
    spent_micros    bigint NOT NULL, -- by then
    forecast_micros bigint,          -- of the whole period, where that is what it tells of
    run_id          uuid,            -- that was stopped
    at              timestamptz NOT NULL DEFAULT now(),
    told_at         timestamptz,
    PRIMARY KEY (tenant_id, scope, scope_id, funds, period_start, kind)
);
CREATE INDEX cap_alerts_untold ON cap_alerts (at) WHERE told_at IS NULL;
CALL protect_tenant_table('cap_alerts', 'SELECT, INSERT, UPDATE (told_at)', 'SELECT');

-- The caps that alerts are about. Those of runs and steps are very many and short-lived.
CREATE INDEX caps_of_periods ON caps (tenant_id) WHERE period <> 'once';
CALL open_to_system('caps', 'SELECT');

-- What the calls of a run came to in a day, for days that are over and do not change any
-- more: usage_until says up to when. Later days are summed from their charges.
CREATE TABLE usage_days (
    tenant_id   uuid NOT NULL,
    day_start   timestamptz NOT NULL,
    month_start timestamptz NOT NULL,
    funds       text NOT NULL,
    run_id      uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    model       text NOT NULL,
    payer       text NOT NULL,
    kind        text NOT NULL,
    key_id      uuid,
    member_id   uuid,
    cost_centre text NOT NULL,
    calls       bigint NOT NULL,
    estimated   bigint NOT NULL,
    input       bigint NOT NULL,
    output      bigint NOT NULL,
    cost        bigint NOT NULL,
    overrun     bigint NOT NULL,
    correction  bigint NOT NULL, -- the part of cost that corrects earlier lines
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX usage_days_of_month ON usage_days (tenant_id, month_start, day_start);
CALL protect_tenant_table('usage_days', 'SELECT, INSERT');
CREATE TABLE usage_until (
    tenant_id uuid PRIMARY KEY REFERENCES tenants (id),
    day_start timestamptz NOT NULL
);
CALL protect_tenant_table('usage_until', 'SELECT, INSERT, UPDATE');

-- All lines of a month in the same shape, summed up by day and run or one by one.
-- +goose StatementBegin
CREATE FUNCTION ledger_usage(from_day timestamptz, to_day timestamptz) RETURNS SETOF usage_days LANGUAGE sql STABLE AS $$
    SELECT c.tenant_id, c.day_start, c.month_start, c.funds, c.run_id, c.pipeline_id, c.model, c.payer, c.kind, c.key_id, c.member_id,
        c.cost_centre, 1::bigint, c.estimated::int::bigint,
        c.input_tokens + c.cache_read_tokens + c.cache_write_tokens + c.cache_write_long_tokens, c.output_tokens + c.reasoning_tokens,
        c.cost_micros::bigint, c.overrun_micros, 0::bigint, NULL::uuid
    FROM charges c WHERE c.tenant_id = ledger_tenant() AND c.day_start >= from_day AND c.day_start < to_day
    UNION ALL
    SELECT k.tenant_id, k.day_start, k.month_start, k.funds, k.run_id, k.pipeline_id, k.model, k.payer, k.kind, k.key_id, k.member_id,
        k.cost_centre, 0, 0, 0, 0, k.cost_micros, k.overrun_micros, k.cost_micros, NULL
    FROM corrections k WHERE k.tenant_id = ledger_tenant() AND k.day_start >= from_day AND k.day_start < to_day
$$;
-- +goose StatementEnd

-- Lines know who started their run. Those that there are already learn it, under the same
-- lifted force as in 0036; the functions are those of 0037, with that.
ALTER TABLE runs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holds NO FORCE ROW LEVEL SECURITY;
ALTER TABLE charges NO FORCE ROW LEVEL SECURITY;
UPDATE holds h SET member_id = r.started_by FROM runs r WHERE r.tenant_id = h.tenant_id AND r.id = h.run_id AND h.member_id IS NULL;
UPDATE charges c SET member_id = r.started_by FROM runs r WHERE r.tenant_id = c.tenant_id AND r.id = c.run_id AND c.member_id IS NULL;
ALTER TABLE runs FORCE ROW LEVEL SECURITY;
ALTER TABLE holds FORCE ROW LEVEL SECURITY;
ALTER TABLE charges FORCE ROW LEVEL SECURITY;

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
            coalesce(g.kind, 'ordinary'), g.key_id,
            coalesce(g.member_id, (SELECT r.started_by FROM runs r WHERE r.tenant_id = t.id AND r.id = g.run_id)), coalesce(g.cost_centre, ''), coalesce(g.ancestors, '{}'),
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
        given.amount, coalesce(given.kind, 'ordinary'), given.key_id, coalesce(given.member_id, r.started_by), coalesce(given.cost_centre, ''),
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
