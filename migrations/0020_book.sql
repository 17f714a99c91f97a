-- +goose Up

-- The money of many calls at once: what some calls cost is booked, other holds are given
-- back, new ones are made. settled and held are lists of documents with the column names
-- of charges and holds. It fails as a whole: with TG001 where a hold has ended before or
-- its run is unknown, with TG002 where a cap leaves no room.
--
-- Rows that are named by their key are looked up one by one: joined, the planner might go
-- through all of a young table's.
--
-- Everybody goes through the balances in the order of ledger_places, and within each by
-- their key, so that two bookings never wait for each other in a circle. A balance is
-- judged on the row as it is once its lock is had, with what this booking gives back.
-- +goose StatementBegin
CREATE FUNCTION ledger_book(settled jsonb, released uuid[], held jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    closed holds[];
    opened holds[];
    met    bigint;
    wanted bigint := jsonb_array_length(settled) + cardinality(released);
    place  integer;
BEGIN
    IF wanted <= 1 AND jsonb_array_length(held) <= 1 THEN -- the same, faster for one call
        PERFORM ledger_settle(document) FROM jsonb_array_elements(settled) s (document);
        PERFORM ledger_release(id) FROM unnest(released) r (id);
        PERFORM ledger_hold(document) FROM jsonb_array_elements(held) h (document);
        RETURN;
    END IF;

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

        INSERT INTO charges (tenant_id, hold_id, run_id, step_run_id, attempt, pipeline_id, funds, payer, month_start,
            model, model_billed, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
            price_input, price_output, price_cache_read, price_cache_write, reserved_micros, cost_micros, estimated,
            request_id, finish, latency_ms, started_at)
        SELECT h.tenant_id, h.id, h.run_id, h.step_run_id, h.attempt, h.pipeline_id, h.funds, h.payer, h.month_start,
            h.model, coalesce(t.model_billed, ''), coalesce(t.input_tokens, 0), coalesce(t.cache_read_tokens, 0),
            coalesce(t.cache_write_tokens, 0), coalesce(t.output_tokens, 0), coalesce(t.reasoning_tokens, 0),
            CASE WHEN t.cost_micros IS NULL THEN h.price_input ELSE t.price_input END,
            CASE WHEN t.cost_micros IS NULL THEN h.price_output ELSE t.price_output END,
            CASE WHEN t.cost_micros IS NULL THEN h.price_cache_read ELSE t.price_cache_read END,
            CASE WHEN t.cost_micros IS NULL THEN h.price_cache_write ELSE t.price_cache_write END,
            h.amount, coalesce(t.cost_micros, h.amount), t.cost_micros IS NULL OR coalesce(t.estimated, false),
            coalesce(t.request_id, ''), coalesce(t.finish, ''), coalesce(t.latency_ms, 0), h.started_at
        FROM unnest(closed) h JOIN jsonb_populate_recordset(NULL::charges, settled) t ON t.hold_id = h.id;
    END IF;

    IF jsonb_array_length(held) > 0 THEN
        WITH made AS (
            INSERT INTO holds (tenant_id, id, run_id, step_run_id, attempt, pipeline_id, model, funds, payer, amount,
                price_input, price_output, price_cache_read, price_cache_write, month_start, dispatched, started_at, expires_at)
            SELECT t.id, g.id, g.run_id, g.step_run_id, g.attempt,
                (SELECT r.pipeline_id FROM runs r WHERE r.tenant_id = t.id AND r.id = g.run_id), g.model, g.funds, g.payer, g.amount,
                g.price_input, g.price_output, g.price_cache_read, g.price_cache_write,
                ledger_month(coalesce(g.started_at, now()), t.zone), g.dispatched, coalesce(g.started_at, now()),
                coalesce(g.started_at, now()) + make_interval(secs => (d.document ->> 'lifetime_seconds')::double precision)
            FROM tenants t
            CROSS JOIN (SELECT document FROM jsonb_array_elements(held) AS e (document) LIMIT jsonb_array_length(held)) d
            CROSS JOIN LATERAL jsonb_populate_record(NULL::holds, d.document) g
            WHERE t.id = ledger_tenant()
                AND g.run_id = (SELECT s.run_id FROM step_runs s WHERE s.tenant_id = t.id AND s.id = g.step_run_id)
            RETURNING holds AS whole
        ) SELECT array_agg(whole) INTO opened FROM made;
        PERFORM require_rows(coalesce(cardinality(opened), 0), jsonb_array_length(held));
    END IF;

    FOR place IN 1..3 LOOP
        WITH moved AS (
            SELECT h AS hold, -h.amount::bigint AS held, 0::bigint AS asked, 1 AS ends,
                CASE WHEN h.state = 'settled' THEN coalesce(t.cost_micros, h.amount)::bigint ELSE 0 END AS cost
            FROM unnest(closed) h LEFT JOIN jsonb_populate_recordset(NULL::charges, settled) t ON t.hold_id = h.id
            UNION ALL
            SELECT h, h.amount, h.amount, 0, 0 FROM unnest(opened) h
        ), sums AS (
            SELECT (m.hold).tenant_id, p.scope, p.scope_id, (m.hold).funds, p.period, p.period_start, sum(m.held)::bigint AS held,
                sum(m.cost)::bigint AS cost, sum(CASE m.ends WHEN 1 THEN greatest(0, m.cost - (m.hold).amount) ELSE 0 END)::bigint AS overrun,
                sum(m.asked)::bigint AS asked, sum(m.ends) AS ends, count(*) > sum(m.ends) AS asks
            FROM moved m CROSS JOIN LATERAL ledger_places(m.hold) p WHERE p.n = place
            GROUP BY 1, 2, 3, 4, 5, 6
        ), due AS MATERIALIZED (
            SELECT s.*, CASE WHEN s.asks THEN c.limit_micros::bigint END AS most FROM sums s
            LEFT JOIN caps c ON c.tenant_id = s.tenant_id AND c.scope = s.scope AND c.scope_id = s.scope_id
                AND c.funds = s.funds AND c.period = s.period
            ORDER BY s.scope_id, s.funds, s.period_start LIMIT cardinality(closed) + cardinality(opened)
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
                AND b.spent_micros + b.held_micros + excluded.held_micros > c.limit_micros)
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM changed) + (SELECT count(*) FROM made), (SELECT count(*) FROM due) INTO met, wanted;
        IF met <> wanted AND cardinality(opened) = 1 THEN
            PERFORM ledger_refuse(opened[1], place);
        ELSIF met <> wanted AND cardinality(opened) > 1 THEN
            RAISE EXCEPTION 'a cap does not allow these holds together' USING ERRCODE = 'TG002';
        END IF;
        PERFORM require_rows(met, wanted);
    END LOOP;
END $$;
-- +goose StatementEnd

-- Charges outlive their runs, and each is copied from the hold that the same statement
-- has just ended, so keys that point there only cost time.
ALTER TABLE charges
    DROP CONSTRAINT charges_tenant_id_hold_id_fkey,
    DROP CONSTRAINT charges_tenant_id_run_id_fkey,
    DROP CONSTRAINT charges_tenant_id_step_run_id_fkey;
