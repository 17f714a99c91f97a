-- +goose Up

-- Money is counted in millionths of a dollar. 10^15 of them, a billion dollars, is the
-- most that one hold or cap may say, so that no sum of ours can leave a bigint.
CREATE DOMAIN micros AS bigint CHECK (VALUE BETWEEN 0 AND 1000000000000000);

-- The limit of a scope: the whole tenant or a pipeline for a calendar month, a run once
-- and for all. No row, or a null limit, means no cap; 0 means no spending at all.
CREATE TABLE caps (
    tenant_id    uuid NOT NULL REFERENCES tenants (id),
    scope        text NOT NULL CHECK (scope IN ('run', 'pipeline', 'tenant')),
    scope_id     text NOT NULL,
    funds        text NOT NULL CHECK (funds IN ('real', 'pretend')),
    period       text NOT NULL CHECK (period IN ('once', 'month')),
    limit_micros micros,
    set_by       uuid REFERENCES users (id),
    set_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, scope, scope_id, funds, period),
    CHECK ((period = 'once') = (scope = 'run'))
);
CALL protect_tenant_table('caps', 'SELECT, INSERT, UPDATE');

-- What a scope has spent and holds in one period. A new period is a new row, made by
-- its first hold: nothing is ever reset. Half of each page stays free, so that the rows
-- which every call of a tenant updates are rewritten in place.
CREATE TABLE balances (
    tenant_id      uuid NOT NULL REFERENCES tenants (id),
    scope          text NOT NULL CHECK (scope IN ('run', 'pipeline', 'tenant')),
    scope_id       text NOT NULL,
    funds          text NOT NULL CHECK (funds IN ('real', 'pretend')),
    period         text NOT NULL CHECK (period IN ('once', 'month')),
    period_start   timestamptz NOT NULL,
    held_micros    bigint NOT NULL CHECK (held_micros >= 0),
    spent_micros   bigint NOT NULL DEFAULT 0 CHECK (spent_micros >= 0),
    overrun_micros bigint NOT NULL DEFAULT 0 CHECK (overrun_micros BETWEEN 0 AND spent_micros),
    PRIMARY KEY (tenant_id, scope, scope_id, funds, period, period_start)
) WITH (fillfactor = 50);
CALL protect_tenant_table('balances', 'SELECT, INSERT, UPDATE');

-- Money reserved for one model call, under the call's id. The prices are those of the
-- moment the call started, in micros per million tokens; null means not known. No key
-- points to the tenant or the pipeline, which the run names already: all calls of a
-- tenant would share the lock of that one row.
CREATE TABLE holds (
    tenant_id         uuid NOT NULL,
    id                uuid NOT NULL,
    run_id            uuid NOT NULL,
    step_run_id       uuid NOT NULL,
    attempt           integer NOT NULL CHECK (attempt > 0),
    pipeline_id       uuid NOT NULL,
    model             text NOT NULL,
    funds             text NOT NULL CHECK (funds IN ('real', 'pretend')),
    payer             text NOT NULL CHECK (payer IN ('own', 'platform')),
    amount            micros NOT NULL,
    price_input       micros,
    price_output      micros,
    price_cache_read  micros,
    price_cache_write micros,
    month_start       timestamptz NOT NULL,
    dispatched        boolean NOT NULL,
    state             text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'released')),
    started_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL CHECK (expires_at > started_at),
    created_at        timestamptz NOT NULL DEFAULT now(),
    closed_at         timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id),
    CHECK ((closed_at IS NULL) = (state = 'open'))
);
CREATE INDEX holds_open ON holds (tenant_id, step_run_id) WHERE state = 'open';
CREATE INDEX holds_expiring ON holds (expires_at) WHERE state = 'open';
CALL protect_tenant_table('holds', 'SELECT, INSERT, UPDATE (dispatched, state, closed_at)', 'SELECT');

-- What a call cost, for ever: the app role can add lines and read them. The key is the
-- hold's, so a hold cannot be charged twice. estimated marks a line whose figures the
-- provider did not tell in full.
CREATE TABLE charges (
    tenant_id         uuid NOT NULL,
    hold_id           uuid NOT NULL,
    run_id            uuid NOT NULL,
    step_run_id       uuid NOT NULL,
    attempt           integer NOT NULL,
    pipeline_id       uuid NOT NULL,
    funds             text NOT NULL CHECK (funds IN ('real', 'pretend')),
    payer             text NOT NULL CHECK (payer IN ('own', 'platform')),
    month_start       timestamptz NOT NULL,
    model             text NOT NULL,
    model_billed      text NOT NULL,
    input_tokens       bigint NOT NULL CHECK (input_tokens >= 0),
    cache_read_tokens  bigint NOT NULL CHECK (cache_read_tokens >= 0),
    cache_write_tokens bigint NOT NULL CHECK (cache_write_tokens >= 0),
    output_tokens      bigint NOT NULL CHECK (output_tokens >= 0),
    reasoning_tokens   bigint NOT NULL CHECK (reasoning_tokens >= 0),
    price_input       micros,
    price_output      micros,
    price_cache_read  micros,
    price_cache_write micros,
    reserved_micros   micros NOT NULL,
    cost_micros       micros NOT NULL,
    overrun_micros    bigint NOT NULL GENERATED ALWAYS AS (greatest(0, cost_micros::bigint - reserved_micros::bigint)) STORED,
    estimated         boolean NOT NULL,
    request_id        text NOT NULL,
    finish            text NOT NULL,
    latency_ms        bigint NOT NULL CHECK (latency_ms >= 0),
    started_at        timestamptz NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, hold_id),
    FOREIGN KEY (tenant_id, hold_id) REFERENCES holds (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, step_run_id) REFERENCES step_runs (tenant_id, id)
);
CREATE INDEX charges_of_run ON charges (tenant_id, run_id, created_at);
CREATE INDEX charges_of_step ON charges (tenant_id, step_run_id, created_at);
CALL protect_tenant_table('charges', 'SELECT, INSERT');

-- The functions below run with the caller's rights, so row-level security binds them.
-- Two take one JSON document with the table's column names: a release that adds a
-- column does not change their signature, so the release before can still call them.

CREATE FUNCTION ledger_tenant() RETURNS uuid LANGUAGE sql STABLE
RETURN nullif(current_setting('app.tenant_id', true), '')::uuid;

-- The instant at which the calendar month of a moment began in a zone. It depends on
-- the local month alone, so every moment of a month finds the same row, also where
-- clocks are changed at the month's first midnight.
CREATE FUNCTION ledger_month(at timestamptz, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN date_trunc('month', at AT TIME ZONE zone) AT TIME ZONE zone;

-- The balances that a hold counts in. Everybody goes through them in the order of n,
-- which is also the order of locks: the row that most calls share comes last and is
-- kept shortest.
CREATE FUNCTION ledger_places(h holds)
RETURNS TABLE (n integer, scope text, scope_id text, period text, period_start timestamptz)
LANGUAGE sql STABLE AS $$
    VALUES (1, 'run', h.run_id::text, 'once', 'epoch'::timestamptz),
           (2, 'pipeline', h.pipeline_id::text, 'month', h.month_start),
           (3, 'tenant', h.tenant_id::text, 'month', h.month_start)
$$;

-- Raises TG002 with the scope that has least left. Places before failed were added to
-- already and had room, so the tightest is among the others. The one that failed is
-- locked by now; if it has room all the same, somebody has raised its cap meanwhile,
-- and a serialization failure makes the caller try again.
-- +goose StatementBegin
CREATE FUNCTION ledger_refuse(h holds, failed integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tightest record;
BEGIN
    SELECT p.scope, p.scope_id, p.period, p.period_start, c.limit_micros,
           c.limit_micros - coalesce(b.spent_micros + b.held_micros, 0) AS available
    INTO tightest
    FROM ledger_places(h) p
    JOIN caps c ON c.tenant_id = h.tenant_id AND c.scope = p.scope AND c.scope_id = p.scope_id
        AND c.funds = h.funds AND c.period = p.period AND c.limit_micros IS NOT NULL
    LEFT JOIN balances b ON b.tenant_id = h.tenant_id AND b.scope = p.scope AND b.scope_id = p.scope_id
        AND b.funds = h.funds AND b.period = p.period AND b.period_start = p.period_start
    WHERE p.n >= failed
    ORDER BY available, p.n
    LIMIT 1;
    IF NOT FOUND OR tightest.available >= h.amount THEN
        RAISE EXCEPTION 'the cap was raised during the hold' USING ERRCODE = 'serialization_failure';
    END IF;
    RAISE EXCEPTION 'the cap does not allow this hold' USING ERRCODE = 'TG002',
        DETAIL = jsonb_build_object(
            'scope', tightest.scope, 'scope_id', tightest.scope_id, 'period', tightest.period,
            'period_start', tightest.period_start, 'funds', h.funds, 'limit', tightest.limit_micros,
            'needed', h.amount, 'available', greatest(0, tightest.available))::text;
END $$;
-- +goose StatementEnd

-- Reserves money or raises TG002. Each balance is changed only if the sum stays within
-- the cap, judged on the row as it is once its lock is had, so any number of calls at
-- once cannot pass the cap together. The hold is written first: its foreign keys share
-- the run's lock, and runs come before balances in the order of locks.
-- +goose StatementBegin
CREATE FUNCTION ledger_hold(document jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    given holds := jsonb_populate_record(NULL::holds, document);
    h     holds;
    place record;
BEGIN
    given.started_at := coalesce(given.started_at, now());
    INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount,
        price_input, price_output, price_cache_read, price_cache_write, month_start, dispatched, started_at, expires_at)
    SELECT t.id, given.id, given.run_id, given.step_run_id, given.attempt, r.pipeline_id, given.model, given.funds,
        given.payer, given.amount, given.price_input, given.price_output, given.price_cache_read,
        given.price_cache_write, ledger_month(given.started_at, t.zone), given.dispatched, given.started_at,
        given.started_at + make_interval(secs => (document ->> 'lifetime_seconds')::double precision)
    FROM tenants t
    JOIN runs r ON r.tenant_id = t.id AND r.id = given.run_id
    JOIN step_runs s ON s.tenant_id = t.id AND s.id = given.step_run_id AND s.run_id = given.run_id
    WHERE t.id = ledger_tenant()
    RETURNING holds.* INTO h;
    IF NOT FOUND THEN
        PERFORM require_one(0);
    END IF;

    FOR place IN
        SELECT p.n, p.scope, p.scope_id, p.period, p.period_start, c.limit_micros::bigint AS most
        FROM ledger_places(h) p
        LEFT JOIN caps c ON c.tenant_id = h.tenant_id AND c.scope = p.scope AND c.scope_id = p.scope_id
            AND c.funds = h.funds AND c.period = p.period
        ORDER BY p.n
    LOOP
        INSERT INTO balances AS b (tenant_id, scope, scope_id, funds, period, period_start, held_micros)
        SELECT h.tenant_id, place.scope, place.scope_id, h.funds, place.period, place.period_start, h.amount
        WHERE place.most IS NULL OR h.amount <= place.most
        ON CONFLICT (tenant_id, scope, scope_id, funds, period, period_start)
        DO UPDATE SET held_micros = b.held_micros + h.amount
        WHERE place.most IS NULL OR b.spent_micros + b.held_micros + h.amount <= place.most;
        IF NOT FOUND THEN
            PERFORM ledger_refuse(h, place.n);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

-- Takes a closed hold out of its balances, in the period it was made in, and adds what
-- the call cost.
-- +goose StatementBegin
CREATE FUNCTION ledger_move(h holds, cost bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place record;
    met   bigint;
BEGIN
    FOR place IN SELECT scope, scope_id, period, period_start FROM ledger_places(h) ORDER BY n LOOP
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

-- Closes an open hold and returns it; raises TG001 if it is not open any more, so that
-- of two who close it one is void with all else in its batch. It asks for closed_at and
-- not for the state, which means the same: asked for open ones, the planner may go
-- through all open holds of the tenant and their dead index entries to find the one.
-- +goose StatementBegin
CREATE FUNCTION ledger_close(hold uuid, new_state text) RETURNS holds LANGUAGE plpgsql AS $$
DECLARE
    h   holds;
    met bigint;
BEGIN
    UPDATE holds SET state = new_state, closed_at = now()
    WHERE tenant_id = ledger_tenant() AND id = hold AND closed_at IS NULL
    RETURNING holds.* INTO h;
    GET DIAGNOSTICS met = ROW_COUNT;
    PERFORM require_one(met);
    RETURN h;
END $$;
-- +goose StatementEnd

-- Books what a call cost and gives back the rest of its hold. Without cost_micros
-- nothing is known about the call: it is booked at the reserved amount and marked.
-- +goose StatementBegin
CREATE FUNCTION ledger_settle(document jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
    END IF;
    INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, month_start,
        model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
        price_input, price_output, price_cache_read, price_cache_write, reserved_micros, cost_micros, estimated,
        request_id, finish, latency_ms, started_at)
    VALUES (h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.month_start,
        h.model, coalesce(told.model_billed, ''), coalesce(told.input_tokens, 0), coalesce(told.cache_read_tokens, 0),
        coalesce(told.cache_write_tokens, 0), coalesce(told.output_tokens, 0), coalesce(told.reasoning_tokens, 0),
        told.price_input, told.price_output, told.price_cache_read, told.price_cache_write, h.amount,
        told.cost_micros, coalesce(told.estimated, false), coalesce(told.request_id, ''), coalesce(told.finish, ''),
        coalesce(told.latency_ms, 0), h.started_at);
    PERFORM ledger_move(h, told.cost_micros);
END $$;
-- +goose StatementEnd

-- Gives a hold back whole: the call was not made, or was refused before any work.
-- +goose StatementBegin
CREATE FUNCTION ledger_release(hold uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM ledger_move(ledger_close(hold, 'released'), 0);
END $$;
-- +goose StatementEnd

-- Ends a hold whose call was given up: what may have reached the provider is booked at
-- the estimate, the rest goes back. Returns how it ended; null if it had ended before,
-- which is no error here. The run's lock comes first, as in every commit of a run.
-- +goose StatementBegin
CREATE FUNCTION ledger_abandon(hold uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    sent boolean;
BEGIN
    PERFORM 1 FROM holds h JOIN runs r ON r.tenant_id = h.tenant_id AND r.id = h.run_id
    WHERE h.tenant_id = ledger_tenant() AND h.id = hold
    FOR KEY SHARE OF r;
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
