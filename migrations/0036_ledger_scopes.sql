-- +goose Up

-- More places that money is counted in: a step that holds others (a loop, an agent), the
-- runs above a child run, a cost centre, a tenant's own provider key, tests, and the
-- tenant's day. Only the run, the runs above it, the pipeline and the tenant's month are
-- always counted. The others are counted from the moment they first get a cap, and ever
-- after; setting it adds up what was spent until then.
ALTER TABLE caps
    DROP CONSTRAINT caps_scope_check, DROP CONSTRAINT caps_period_check, DROP CONSTRAINT caps_check,
    ADD CONSTRAINT caps_place CHECK ((scope, period) IN (('step', 'once'), ('run', 'once'), ('pipeline', 'month'),
        ('cost_centre', 'month'), ('key', 'month'), ('test', 'month'), ('tenant_day', 'day'), ('tenant', 'month'))),
    ADD COLUMN mode text NOT NULL DEFAULT 'stop' CHECK (mode IN ('stop', 'alert')),
    ADD COLUMN limit_until timestamptz, -- then limit_after is the limit
    ADD COLUMN limit_after micros,
    ADD COLUMN counted_from timestamptz; -- the earliest period that was added up; null: from the first hold on
ALTER TABLE balances
    DROP CONSTRAINT balances_scope_check, DROP CONSTRAINT balances_period_check,
    ADD CONSTRAINT balances_place CHECK ((scope, period) IN (('step', 'once'), ('run', 'once'), ('pipeline', 'month'),
        ('cost_centre', 'month'), ('key', 'month'), ('test', 'month'), ('tenant_day', 'day'), ('tenant', 'month')));

-- What a call is booked under. Who pays and for whom is copied to its charge, so that
-- charges can be added up in every way without the runs, which they outlive.
ALTER TABLE holds
    ADD COLUMN kind        text   NOT NULL DEFAULT 'ordinary' CHECK (kind IN ('ordinary', 'test')),
    ADD COLUMN key_id      uuid, -- the tenant's own provider key; null for the platform's
    ADD COLUMN member_id   uuid, -- who started the run
    ADD COLUMN cost_centre text   NOT NULL DEFAULT '' CHECK (length(cost_centre) <= 100),
    ADD COLUMN ancestors   uuid[] NOT NULL DEFAULT '{}', -- the runs above
    ADD COLUMN steps       uuid[] NOT NULL DEFAULT '{}', -- step runs around the call that have a limit, its own too
    ADD COLUMN price_cache_write_long micros,
    ADD COLUMN day_start   timestamptz;
ALTER TABLE charges
    ADD COLUMN kind        text   NOT NULL DEFAULT 'ordinary' CHECK (kind IN ('ordinary', 'test')),
    ADD COLUMN key_id      uuid,
    ADD COLUMN member_id   uuid,
    ADD COLUMN cost_centre text   NOT NULL DEFAULT '',
    ADD COLUMN cache_write_long_tokens bigint NOT NULL DEFAULT 0 CHECK (cache_write_long_tokens >= 0),
    ADD COLUMN price_cache_write_long micros,
    ADD COLUMN day_start   timestamptz;

-- The instant at which the day of a moment began in a zone, as ledger_month.
CREATE FUNCTION ledger_day(at timestamptz, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN date_trunc('day', at AT TIME ZONE zone) AT TIME ZONE zone;

-- Lines that there are already get their day. The owner of a table under forced row-level
-- security sees none of its rows, so the force is taken off for that.
ALTER TABLE tenants NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holds NO FORCE ROW LEVEL SECURITY;
ALTER TABLE charges NO FORCE ROW LEVEL SECURITY;
UPDATE holds h SET day_start = ledger_day(h.started_at, t.zone) FROM tenants t WHERE t.id = h.tenant_id;
UPDATE charges c SET day_start = ledger_day(c.started_at, t.zone) FROM tenants t WHERE t.id = c.tenant_id;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE holds FORCE ROW LEVEL SECURITY;
ALTER TABLE charges FORCE ROW LEVEL SECURITY;
ALTER TABLE holds ALTER COLUMN day_start SET NOT NULL;
ALTER TABLE charges ALTER COLUMN day_start SET NOT NULL;
CREATE INDEX charges_of_day ON charges (tenant_id, day_start);

-- Setting a cap keeps every booking of the tenant out, and the other way round; bookings
-- let each other pass. So whoever books has seen every cap that is set, and whoever sets
-- one sees every call. The lock comes before all of holds and balances, and after runs.
CREATE FUNCTION ledger_lock() RETURNS bigint LANGUAGE sql STABLE
RETURN hashtextextended('ledger ' || ledger_tenant(), 0);

-- The limit that counts now; null where nothing is to be stopped.
CREATE FUNCTION ledger_limit(c caps) RETURNS bigint LANGUAGE sql STABLE
RETURN CASE WHEN c.mode = 'alert' THEN NULL WHEN c.limit_until <= now() THEN c.limit_after ELSE c.limit_micros END;

-- The balances that a hold may count in: always, or if they have a cap. Everybody goes
-- through them in the order of n and then of scope_id, which is also the order of locks:
-- the row that most calls share comes last and is kept shortest.
DROP FUNCTION ledger_places(holds);
CREATE FUNCTION ledger_places(h holds)
RETURNS TABLE (n integer, scope text, scope_id text, period text, period_start timestamptz, always boolean)
LANGUAGE sql STABLE AS $$
    SELECT p.n, p.scope, one.id, p.period, p.period_start, p.always
    FROM (VALUES
        (1, 'step', h.steps::text[], 'once', 'epoch'::timestamptz, false),
        (2, 'run', (h.run_id || h.ancestors)::text[], 'once', 'epoch', true),
        (3, 'pipeline', ARRAY[h.pipeline_id::text], 'month', h.month_start, true),
        (4, 'cost_centre', array_remove(ARRAY[h.cost_centre], ''), 'month', h.month_start, false),
        (5, 'key', array_remove(ARRAY[h.key_id::text], NULL), 'month', h.month_start, false),
        (6, 'test', CASE h.kind WHEN 'test' THEN ARRAY[h.tenant_id::text] END, 'month', h.month_start, false),
        (7, 'tenant_day', ARRAY[h.tenant_id::text], 'day', h.day_start, false),
        (8, 'tenant', ARRAY[h.tenant_id::text], 'month', h.month_start, true)
    ) p (n, scope, ids, period, period_start, always)
    CROSS JOIN LATERAL unnest(p.ids) one (id)
$$;

-- The balances that a hold does count in, with the most that each may come to.
CREATE FUNCTION ledger_counted(h holds)
RETURNS TABLE (n integer, scope text, scope_id text, period text, period_start timestamptz, most bigint)
LANGUAGE sql STABLE AS $$
    SELECT p.n, p.scope, p.scope_id, p.period, p.period_start, ledger_limit(c)
    FROM ledger_places(h) p
    LEFT JOIN caps c ON c.tenant_id = h.tenant_id AND c.scope = p.scope AND c.scope_id = p.scope_id
        AND c.funds = h.funds AND c.period = p.period
    WHERE p.always OR c.tenant_id IS NOT NULL AND p.period_start >= coalesce(c.counted_from, p.period_start)
$$;

-- Raises TG002 with the cap that has least left, of those from failed on; failing names
-- those at failed itself that had no room. The ones before were added to already.
DROP FUNCTION ledger_refuse(holds, integer);
-- +goose StatementBegin
CREATE FUNCTION ledger_refuse(h holds, failed integer, failing text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tightest record;
BEGIN
    SELECT p.scope, p.scope_id, p.period, p.period_start, p.most,
           p.most - coalesce(b.spent_micros + b.held_micros, 0) AS available
    INTO tightest
    FROM ledger_counted(h) p
    LEFT JOIN balances b ON b.tenant_id = h.tenant_id AND b.scope = p.scope AND b.scope_id = p.scope_id
        AND b.funds = h.funds AND b.period = p.period AND b.period_start = p.period_start
    WHERE p.most IS NOT NULL AND (p.n > failed OR p.n = failed AND p.scope_id = ANY (failing))
    ORDER BY available, p.n, p.scope_id
    LIMIT 1;
    IF NOT FOUND OR tightest.available >= h.amount THEN
        RAISE EXCEPTION 'room was made during the hold' USING ERRCODE = 'serialization_failure';
    END IF;
    RAISE EXCEPTION 'the cap does not allow this hold' USING ERRCODE = 'TG002',
        DETAIL = jsonb_build_object(
            'scope', tightest.scope, 'scope_id', tightest.scope_id, 'period', tightest.period,
            'period_start', tightest.period_start, 'funds', h.funds, 'limit', tightest.most,
            'needed', h.amount, 'available', greatest(0, tightest.available))::text;
END $$;
-- +goose StatementEnd

-- A step's limit becomes its cap with the first hold beneath it, before anything is
-- counted there.
-- +goose StatementBegin
CREATE FUNCTION ledger_limit_steps(held jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros)
    SELECT DISTINCT ON (l.id, d.document ->> 'funds') ledger_tenant(), 'step', l.id::text, d.document ->> 'funds', 'once', l.most
    FROM jsonb_array_elements(held) AS d (document)
    CROSS JOIN LATERAL jsonb_to_recordset(d.document -> 'step_limits') AS l (id uuid, most bigint)
    WHERE d.document ? 'step_limits' AND NOT EXISTS (SELECT FROM caps c WHERE c.tenant_id = ledger_tenant() AND c.scope = 'step'
        AND c.scope_id = l.id::text AND c.funds = d.document ->> 'funds' AND c.period = 'once')
    ORDER BY l.id, d.document ->> 'funds', l.most
    ON CONFLICT DO NOTHING;
END $$;
-- +goose StatementEnd

-- Writes holds, without counting them yet. Their foreign keys share the locks of run and
-- step run, which come before the money's. Rows that are named by their key are looked up
-- one by one: joined, the planner might go through all of a young table's.
-- +goose StatementBegin
CREATE FUNCTION ledger_write(held jsonb) RETURNS holds[] LANGUAGE plpgsql AS $$
DECLARE
    opened holds[];
BEGIN
    WITH made AS (
        INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount, kind, key_id,
            member_id, cost_centre, ancestors, steps, price_input, price_output, price_cache_read, price_cache_write,
            price_cache_write_long, month_start, day_start, dispatched, started_at, expires_at)
        SELECT t.id, g.id, g.run_id, g.step_run_id, g.attempt,
            (SELECT r.pipeline_id FROM runs r WHERE r.tenant_id = t.id AND r.id = g.run_id), g.model, g.funds, g.payer, g.amount,
            coalesce(g.kind, 'ordinary'), g.key_id, g.member_id, coalesce(g.cost_centre, ''), coalesce(g.ancestors, '{}'),
            coalesce(g.steps, '{}'), g.price_input, g.price_output, g.price_cache_read, g.price_cache_write,
            g.price_cache_write_long, ledger_month(coalesce(g.started_at, now()), t.zone),
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

-- The same for one hold, faster.
-- +goose StatementBegin
CREATE FUNCTION ledger_write_one(document jsonb) RETURNS holds LANGUAGE plpgsql AS $$
DECLARE
    given holds := jsonb_populate_record(NULL::holds, document);
    h     holds;
BEGIN
    given.started_at := coalesce(given.started_at, now());
    INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount, kind, key_id,
        member_id, cost_centre, ancestors, steps, price_input, price_output, price_cache_read, price_cache_write,
        price_cache_write_long, month_start, day_start, dispatched, started_at, expires_at)
    SELECT t.id, given.id, given.run_id, given.step_run_id, given.attempt, r.pipeline_id, given.model, given.funds, given.payer,
        given.amount, coalesce(given.kind, 'ordinary'), given.key_id, given.member_id, coalesce(given.cost_centre, ''),
        coalesce(given.ancestors, '{}'), coalesce(given.steps, '{}'), given.price_input, given.price_output,
        given.price_cache_read, given.price_cache_write, given.price_cache_write_long, ledger_month(given.started_at, t.zone),
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

-- Counts one written hold or raises TG002. Each balance is changed only if the sum stays
-- within the cap, judged on the row as it is once its lock is had, so any number of calls
-- at once cannot pass the cap together.
-- +goose StatementBegin
CREATE FUNCTION ledger_reserve(h holds) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place record;
BEGIN
    FOR place IN SELECT * FROM ledger_counted(h) p ORDER BY p.n, p.scope_id LOOP
        INSERT INTO balances AS b (tenant_id, scope, scope_id, funds, period, period_start, held_micros)
        SELECT h.tenant_id, place.scope, place.scope_id, h.funds, place.period, place.period_start, h.amount
        WHERE place.most IS NULL OR h.amount <= place.most
        ON CONFLICT (tenant_id, scope, scope_id, funds, period, period_start)
        DO UPDATE SET held_micros = b.held_micros + h.amount
        WHERE place.most IS NULL OR b.spent_micros + b.held_micros + h.amount <= place.most;
        IF NOT FOUND THEN
            PERFORM ledger_refuse(h, place.n,
                ARRAY(SELECT p.scope_id FROM ledger_counted(h) p WHERE p.n = place.n AND p.scope_id >= place.scope_id));
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
DROP FUNCTION ledger_hold(jsonb);

-- Takes a closed hold out of its balances, in the period it was made in, and adds what
-- the call cost.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_move(h holds, cost bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place record;
    met   bigint;
BEGIN
    FOR place IN SELECT * FROM ledger_counted(h) p ORDER BY p.n, p.scope_id LOOP
        UPDATE balances b
        SET held_micros = b.held_micros - h.amount,
            spent_micros = b.spent_micros + cost,
            overrun_micros = b.overrun_micros + greatest(0, cost - h.amount)
        WHERE b.tenant_id = h.tenant_id AND b.scope = place.scope AND b.scope_id = place.scope_id
          AND b.funds = h.funds AND b.period = place.period AND b.period_start = place.period_start;
        GET DIAGNOSTICS met = ROW_COUNT;
        PERFORM require_one(met);
    END LOOP;
END $$;
-- +goose StatementEnd

-- Writes the charges of closed holds. Without cost_micros nothing is known about a call:
-- it is booked at the reserved amount, at its hold's prices, and marked.
-- +goose StatementBegin
CREATE FUNCTION ledger_charge(closed holds[], settled jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id,
        cost_centre, month_start, day_start, model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens,
        cache_write_long_tokens, output_tokens, reasoning_tokens, price_input, price_output, price_cache_read,
        price_cache_write, price_cache_write_long, reserved_micros, cost_micros, estimated, request_id, finish, latency_ms, started_at)
    SELECT h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.kind, h.key_id, h.member_id,
        h.cost_centre, h.month_start, h.day_start, h.model, coalesce(t.model_billed, ''), coalesce(t.input_tokens, 0),
        coalesce(t.cache_read_tokens, 0), coalesce(t.cache_write_tokens, 0), coalesce(t.cache_write_long_tokens, 0),
        coalesce(t.output_tokens, 0), coalesce(t.reasoning_tokens, 0),
        CASE WHEN t.cost_micros IS NULL THEN h.price_input ELSE t.price_input END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_output ELSE t.price_output END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_read ELSE t.price_cache_read END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_write ELSE t.price_cache_write END,
        CASE WHEN t.cost_micros IS NULL THEN h.price_cache_write_long ELSE t.price_cache_write_long END,
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
    END IF;
    INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, kind, key_id, member_id,
        cost_centre, month_start, day_start, model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens,
        cache_write_long_tokens, output_tokens, reasoning_tokens, price_input, price_output, price_cache_read,
        price_cache_write, price_cache_write_long, reserved_micros, cost_micros, estimated, request_id, finish, latency_ms, started_at)
    VALUES (h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.kind, h.key_id, h.member_id,
        h.cost_centre, h.month_start, h.day_start, h.model, coalesce(told.model_billed, ''), coalesce(told.input_tokens, 0),
        coalesce(told.cache_read_tokens, 0), coalesce(told.cache_write_tokens, 0), coalesce(told.cache_write_long_tokens, 0),
        coalesce(told.output_tokens, 0), coalesce(told.reasoning_tokens, 0), told.price_input, told.price_output,
        told.price_cache_read, told.price_cache_write, told.price_cache_write_long, h.amount, told.cost_micros,
        coalesce(told.estimated, false), coalesce(told.request_id, ''), coalesce(told.finish, ''),
        coalesce(told.latency_ms, 0), h.started_at);
    PERFORM ledger_move(h, told.cost_micros);
END $$;
-- +goose StatementEnd

-- Ends a hold whose call was given up: what may have reached the provider is booked at
-- the estimate, the rest goes back. Returns how it ended; null if it had ended before,
-- which is no error here. The run's lock comes first, as in every commit of a run.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_abandon(hold uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    sent boolean;
BEGIN
    PERFORM 1 FROM holds h JOIN runs r ON r.tenant_id = h.tenant_id AND r.id = h.run_id
    WHERE h.tenant_id = ledger_tenant() AND h.id = hold
    FOR KEY SHARE OF r;
    PERFORM pg_advisory_xact_lock_shared(ledger_lock());
    SELECT dispatched INTO sent FROM holds
    WHERE tenant_id = ledger_tenant() AND id = hold AND closed_at IS NULL
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF sent THEN
        PERFORM ledger_settle(jsonb_build_object('hold_id', hold));
        RETURN 'settled';
    END IF;
    PERFORM ledger_release(hold);
    RETURN 'released';
END $$;
-- +goose StatementEnd

-- The money of many calls at once: what some calls cost is booked, other holds are given
-- back, new ones are made. settled and held are lists of documents with the column names
-- of charges and holds. It fails as a whole: with TG001 where a hold has ended before or
-- its run is unknown, with TG002 where a cap leaves no room.
--
-- Everybody goes through the balances in the order of ledger_places, and within each by
-- their key, so that two bookings never wait for each other in a circle. A balance is
-- judged on the row as it is once its lock is had, with what this booking gives back.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_book(settled jsonb, released uuid[], held jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    closed holds[];
    opened holds[];
    met    bigint;
    wanted bigint := jsonb_array_length(settled) + cardinality(released);
    place  integer;
    lacking text[];
    one    holds;
BEGIN
    IF wanted <= 1 AND jsonb_array_length(held) <= 1 THEN -- the same, faster for one call
        IF jsonb_array_length(held) = 1 THEN
            one := ledger_write_one(held -> 0);
        END IF;
        PERFORM pg_advisory_xact_lock_shared(ledger_lock());
        IF jsonb_array_length(settled) = 1 THEN
            PERFORM ledger_settle(settled -> 0);
        ELSIF cardinality(released) = 1 THEN
            PERFORM ledger_release(released[1]);
        END IF;
        IF jsonb_array_length(held) = 1 THEN
            PERFORM ledger_reserve(one);
        END IF;
        RETURN;
    END IF;

    IF jsonb_array_length(held) > 0 THEN
        opened := ledger_write(held);
    END IF;
    PERFORM pg_advisory_xact_lock_shared(ledger_lock());

    IF wanted > 0 THEN
        WITH ended AS (
            UPDATE holds h SET state = e.state, closed_at = now()
            FROM (
                SELECT id, state FROM (
                    SELECT (document ->> 'hold_id')::uuid AS id, 'settled' AS state FROM jsonb_array_elements(settled) AS s (document)
                    UNION ALL SELECT id, 'released' FROM unnest(released) AS r (id)
                ) every ORDER BY id LIMIT wanted
            ) e
            WHERE h.tenant_id = ledger_tenant() AND h.id = e.id AND h.closed_at IS NULL
            RETURNING h AS whole
        ) SELECT array_agg(whole) INTO closed FROM ended;
        PERFORM require_rows(coalesce(cardinality(closed), 0), wanted);
        PERFORM ledger_charge(closed, settled);
    END IF;

    FOR place IN
        SELECT DISTINCT p.n FROM (SELECT unnest(closed) AS hold UNION ALL SELECT unnest(opened)) m
        CROSS JOIN LATERAL ledger_counted(m.hold) p ORDER BY p.n
    LOOP
        WITH moved AS (
            SELECT h AS hold, -h.amount::bigint AS held, 0::bigint AS asked, 1 AS ends,
                CASE WHEN h.state = 'settled' THEN coalesce(t.cost_micros, h.amount)::bigint ELSE 0 END AS cost
            FROM unnest(closed) h LEFT JOIN jsonb_populate_recordset(NULL::charges, settled) t ON t.hold_id = h.id
            UNION ALL
            SELECT h, h.amount, h.amount, 0, 0 FROM unnest(opened) h
        ), sums AS (
            SELECT (m.hold).tenant_id, p.scope, p.scope_id, (m.hold).funds, p.period, p.period_start, sum(m.held)::bigint AS held,
                sum(m.cost)::bigint AS cost, sum(CASE m.ends WHEN 1 THEN greatest(0, m.cost - (m.hold).amount) ELSE 0 END)::bigint AS overrun,
                sum(m.asked)::bigint AS asked, sum(m.ends) AS ends, CASE WHEN count(*) > sum(m.ends) THEN max(p.most) END AS most
            FROM moved m CROSS JOIN LATERAL ledger_counted(m.hold) p WHERE p.n = place
            GROUP BY 1, 2, 3, 4, 5, 6
        ), due AS MATERIALIZED (
            SELECT * FROM sums s
            ORDER BY s.scope_id, s.funds, s.period_start LIMIT (SELECT count(*) FROM sums)
        ), changed AS (
            UPDATE balances b
            SET held_micros = b.held_micros + d.held, spent_micros = b.spent_micros + d.cost, overrun_micros = b.overrun_micros + d.overrun
            FROM due d
            WHERE b.tenant_id = d.tenant_id AND b.scope = d.scope AND b.scope_id = d.scope_id AND b.funds = d.funds
                AND b.period = d.period AND b.period_start = d.period_start
                AND (d.most IS NULL OR b.spent_micros + d.cost + b.held_micros + d.held <= d.most)
            RETURNING b.scope_id, b.funds, b.period_start
        ), made AS (
            INSERT INTO balances AS b (tenant_id, scope, scope_id, funds, period, period_start, held_micros)
            SELECT d.tenant_id, d.scope, d.scope_id, d.funds, d.period, d.period_start, d.asked FROM due d
            WHERE d.ends = 0 AND (d.most IS NULL OR d.asked <= d.most)
                AND NOT EXISTS (SELECT FROM changed c WHERE c.scope_id = d.scope_id AND c.funds = d.funds AND c.period_start = d.period_start)
            ON CONFLICT (tenant_id, scope, scope_id, funds, period, period_start)
            DO UPDATE SET held_micros = b.held_micros + excluded.held_micros
            WHERE NOT EXISTS (SELECT FROM caps c WHERE c.tenant_id = excluded.tenant_id AND c.scope = excluded.scope
                AND c.scope_id = excluded.scope_id AND c.funds = excluded.funds AND c.period = excluded.period
                AND b.spent_micros + b.held_micros + excluded.held_micros > ledger_limit(c))
            RETURNING b.scope_id, b.funds, b.period_start
        ), done AS (SELECT * FROM changed UNION ALL SELECT * FROM made)
        SELECT (SELECT count(*) FROM done), (SELECT count(*) FROM due),
            ARRAY(SELECT d.scope_id FROM due d EXCEPT SELECT o.scope_id FROM done o)
        INTO met, wanted, lacking;
        IF met <> wanted AND cardinality(opened) = 1 THEN
            PERFORM ledger_refuse(opened[1], place, lacking);
        ELSIF met <> wanted AND cardinality(opened) > 1 THEN
            RAISE EXCEPTION 'a cap does not allow these holds together' USING ERRCODE = 'TG002';
        END IF;
        PERFORM require_rows(met, wanted);
    END LOOP;
END $$;
-- +goose StatementEnd

-- Sets a cap, with every booking of the tenant kept out until this transaction ends. A
-- place that was not counted before gets its balances from the lines: of the period that
-- is, the one before it, and all in which something is held.
-- +goose StatementBegin
CREATE FUNCTION ledger_cap(given caps) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    since timestamptz;
    fresh boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(ledger_lock());
    SELECT NOT EXISTS (SELECT FROM caps c WHERE c.tenant_id = ledger_tenant() AND c.scope = given.scope
        AND c.scope_id = given.scope_id AND c.funds = given.funds AND c.period = given.period) INTO fresh;
    IF fresh AND given.scope IN ('cost_centre', 'key', 'test', 'tenant_day') THEN
        SELECT CASE given.period WHEN 'day' THEN ledger_day(ledger_day(now(), t.zone) - interval '1 hour', t.zone)
                                 ELSE ledger_month(ledger_month(now(), t.zone) - interval '1 hour', t.zone) END
        INTO since FROM tenants t WHERE t.id = ledger_tenant();
        SELECT least(since, min(CASE given.period WHEN 'day' THEN h.day_start ELSE h.month_start END)) INTO since
        FROM holds h WHERE h.tenant_id = ledger_tenant() AND h.state = 'open';
    END IF;

    INSERT INTO caps (tenant_id, scope, scope_id, funds, period, limit_micros, mode, limit_until, limit_after, set_by, counted_from)
    VALUES (ledger_tenant(), given.scope, given.scope_id, given.funds, given.period, given.limit_micros, given.mode,
        given.limit_until, given.limit_after, given.set_by, since)
    ON CONFLICT (tenant_id, scope, scope_id, funds, period)
    DO UPDATE SET limit_micros = excluded.limit_micros, mode = excluded.mode, limit_until = excluded.limit_until,
        limit_after = excluded.limit_after, set_by = excluded.set_by, set_at = now();

    IF fresh AND given.scope NOT IN ('run', 'pipeline', 'tenant') THEN
        INSERT INTO balances (tenant_id, scope, scope_id, funds, period, period_start, held_micros, spent_micros, overrun_micros)
        SELECT ledger_tenant(), given.scope, given.scope_id, given.funds, given.period, l.period_start,
            sum(l.held), sum(l.spent), sum(l.overrun)
        FROM ledger_lines(given, since) l GROUP BY l.period_start;
    END IF;
END $$;
-- +goose StatementEnd

-- What was held and spent at the place of a cap, by period, from since on.
-- +goose StatementBegin
CREATE FUNCTION ledger_lines(place caps, since timestamptz)
RETURNS TABLE (period_start timestamptz, held bigint, spent bigint, overrun bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT p.period_start, h.amount::bigint, 0::bigint, 0::bigint
        FROM holds h CROSS JOIN LATERAL ledger_places(h) p
        WHERE h.tenant_id = ledger_tenant() AND h.state = 'open' AND h.funds = place.funds
            AND p.scope = place.scope AND p.scope_id = place.scope_id;
    IF place.scope = 'step' THEN
        RETURN QUERY SELECT 'epoch'::timestamptz, 0::bigint, c.cost_micros::bigint, c.overrun_micros
            FROM holds h JOIN charges c ON c.tenant_id = h.tenant_id AND c.hold_id = h.id
            WHERE h.tenant_id = ledger_tenant() AND h.funds = place.funds AND h.steps @> ARRAY[place.scope_id::uuid];
        RETURN;
    END IF;
    RETURN QUERY SELECT CASE place.period WHEN 'day' THEN c.day_start ELSE c.month_start END,
            0::bigint, c.cost_micros::bigint, c.overrun_micros
        FROM charges c
        WHERE c.tenant_id = ledger_tenant() AND c.funds = place.funds AND c.day_start >= since
            AND CASE place.scope WHEN 'cost_centre' THEN c.cost_centre = place.scope_id
                WHEN 'key' THEN c.key_id::text = place.scope_id
                WHEN 'test' THEN c.kind = 'test'
                ELSE true END;
END $$;
-- +goose StatementEnd
