-- +goose Up

-- How fast models may be called: token buckets, which fill with time and are taken from
-- before a call. A bucket belongs to a key and a model, or to a workspace; the
-- installation's own keys are shared by all workspaces, so the table has no tenant.
-- requests and tokens are what is left, in millionths, and may fall below zero where a call
-- used more than was reserved. ceiling_* is the limit that the provider itself told last,
-- which counts where it is lower than ours. share is how much of the most that a call could
-- use calls did use of late, per mille, and learned of how many. turn is how far the line
-- has come.
CREATE TABLE rate_buckets (
    name             text PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 300),
    filled_at        timestamptz NOT NULL,
    requests         bigint NOT NULL,
    tokens           bigint NOT NULL,
    paused_until     timestamptz NOT NULL DEFAULT 'epoch',
    ceiling_requests bigint CHECK (ceiling_requests > 0),
    ceiling_tokens   bigint CHECK (ceiling_tokens > 0),
    share            integer NOT NULL DEFAULT 1000 CHECK (share BETWEEN 1 AND 1000),
    learned          integer NOT NULL DEFAULT 0,
    turn             bigint NOT NULL DEFAULT 0
);
CALL protect_system_table('rate_buckets', 'SELECT, INSERT, UPDATE, DELETE');

-- The line before a bucket: calls that wait, by id of their step. turn orders it: each
-- workspace's next call stands behind its own last one, counted in tokens, so that who has
-- few waiting is not behind all of who has many. bound is the most tokens it can use. One that does not ask again within half a
-- minute of its time has left.
CREATE TABLE rate_tickets (
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    bucket    text NOT NULL,
    id        uuid NOT NULL,
    bound     bigint NOT NULL,
    turn      bigint NOT NULL,
    due_at    timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, bucket, id)
);
CREATE INDEX rate_tickets_line ON rate_tickets (bucket, turn, id);
CALL protect_tenant_table('rate_tickets', 'SELECT', 'SELECT, INSERT, UPDATE, DELETE');

-- What fits into a bucket: the sixth part of a minute's, and at least one call or token.
CREATE FUNCTION rate_room(per_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT greatest(per_minute * 1000000 / 6, 1000000)';

-- How long, in microseconds, until missing millionths have flowed in.
CREATE FUNCTION rate_wait(missing bigint, per_minute bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN missing <= 0 THEN 0 ELSE least((missing::numeric * 60 / per_minute)::bigint + 1, 86400000000) END';

-- The limit that counts: ours, or the lower one that the provider told. 0 is none.
CREATE FUNCTION rate_limit(ours bigint, told bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN ours = 0 THEN 0 ELSE least(ours, told) END';

-- What is in a bucket after so many microseconds.
CREATE FUNCTION rate_level(was bigint, per_minute bigint, elapsed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT CASE WHEN per_minute = 0 THEN 0 ELSE least(was + per_minute * elapsed / 60, rate_room(per_minute)) END';

-- Fills a bucket up to now and returns it, locked.
-- +goose StatementBegin
CREATE FUNCTION rate_fill(bucket text, ours_requests bigint, ours_tokens bigint) RETURNS rate_buckets
LANGUAGE plpgsql AS $$
DECLARE
    b       rate_buckets;
    at      timestamptz;
    elapsed bigint;
BEGIN
    INSERT INTO rate_buckets (name, filled_at, requests, tokens)
        VALUES (bucket, clock_timestamp(), rate_room(ours_requests), rate_room(ours_tokens))
        ON CONFLICT DO NOTHING;
    SELECT * INTO b FROM rate_buckets r WHERE r.name = bucket FOR UPDATE;
    at := greatest(clock_timestamp(), b.filled_at);
    elapsed := (extract(epoch FROM least(at - b.filled_at, interval '10 minutes')) * 1000000)::bigint;
    b.requests := rate_level(b.requests, rate_limit(ours_requests, b.ceiling_requests), elapsed);
    b.tokens := rate_level(b.tokens, rate_limit(ours_tokens, b.ceiling_tokens), elapsed);
    b.filled_at := at;
    RETURN b;
END $$;
-- +goose StatementEnd

-- Lets a call begin that uses at most bound tokens, if all of its buckets allow it, or says
-- how long to wait before asking again, in microseconds, and keeps its place in the line.
-- Says what is reserved in each bucket, and which one is in the way. Buckets are locked in
-- the order given, which must be that of their names.
-- +goose StatementBegin
CREATE FUNCTION rate_ask(tenant uuid, ticket uuid, bound bigint, names text[], ours_requests bigint[], ours_tokens bigint[],
    OUT wait bigint, OUT reserved bigint[], OUT barred_by text)
LANGUAGE plpgsql AS $$
DECLARE
    b          rate_buckets;
    filled     rate_buckets[] := '{}';
    turns      bigint[] := '{}';
    per_minute bigint;
    cost       bigint;
    mine       bigint;
    requests   bigint; -- of those before
    tokens     bigint;
    here       bigint;
    paused     bigint := 0; -- how long a provider wants to be left alone
    most       bigint;
BEGIN
    wait := 0;
    reserved := '{}';
    FOR i IN 1 .. cardinality(names) LOOP
        b := rate_fill(names[i], ours_requests[i], ours_tokens[i]);
        cost := greatest(bound * b.share / 1000, 1);
        DELETE FROM rate_tickets t WHERE t.bucket = names[i] AND t.due_at < b.filled_at - interval '30 seconds';
        SELECT t.turn INTO mine FROM rate_tickets t WHERE t.tenant_id = tenant AND t.bucket = names[i] AND t.id = ticket;
        IF mine IS NULL THEN
            SELECT greatest(b.turn, max(t.turn)) + cost INTO mine FROM rate_tickets t WHERE t.tenant_id = tenant AND t.bucket = names[i];
        END IF;
        SELECT count(*), coalesce(sum(greatest(t.bound * b.share / 1000, 1)), 0) INTO requests, tokens
            FROM rate_tickets t WHERE t.bucket = names[i] AND (t.turn, t.id) < (mine, ticket);
        here := (extract(epoch FROM greatest(b.paused_until, b.filled_at) - b.filled_at) * 1000000)::bigint;
        paused := greatest(paused, here);
        per_minute := rate_limit(ours_requests[i], b.ceiling_requests);
        IF per_minute > 0 THEN
            here := greatest(here, rate_wait((requests + 1) * 1000000 - b.requests, per_minute));
        END IF;
        per_minute := rate_limit(ours_tokens[i], b.ceiling_tokens);
        IF per_minute > 0 THEN -- what is larger than the bucket begins when that is full
            here := greatest(here, rate_wait(tokens * 1000000 + least(cost * 1000000, rate_room(per_minute)) - b.tokens, per_minute));
        END IF;
        IF here > wait THEN
            wait := here;
            most := greatest(10000000, requests * 100000);
            barred_by := names[i];
        END IF;
        filled := filled || b;
        turns := turns || mine;
        reserved := reserved || cost;
    END LOOP;
    FOR i IN 1 .. cardinality(names) LOOP
        b := filled[i];
        IF wait = 0 THEN
            DELETE FROM rate_tickets t WHERE t.tenant_id = tenant AND t.bucket = names[i] AND t.id = ticket;
            b.requests := b.requests - 1000000;
            b.tokens := b.tokens - reserved[i] * 1000000;
            b.turn := greatest(b.turn, turns[i]);
        END IF;
        UPDATE rate_buckets r SET filled_at = b.filled_at, requests = b.requests, tokens = b.tokens, turn = b.turn WHERE r.name = names[i];
    END LOOP;
    IF wait = 0 THEN
        RETURN;
    END IF;
    -- Who is far behind asks again before his time: others may have left the line, or used
    -- less than was thought. The longer the line the less often, so that all together ask no
    -- more than about ten times a second.
    wait := greatest(CASE WHEN wait > 5000000 THEN least(greatest(wait * 6 / 10, 5000000), most) ELSE wait END, paused, 20000);
    INSERT INTO rate_tickets (tenant_id, bucket, id, bound, turn, due_at)
        SELECT tenant, names[i], ticket, rate_ask.bound, turns[i], filled[i].filled_at + wait * interval '1 microsecond'
        FROM generate_subscripts(names, 1) i
        ON CONFLICT (tenant_id, bucket, id) DO UPDATE SET bound = excluded.bound, due_at = excluded.due_at;
END $$;
-- +goose StatementEnd

-- Corrects what a call reserved by what it used; where nobody knows that, used is null and
-- what was reserved stays. What calls use of their bound is learned where learn says so. The
-- provider's word lowers the bucket of the key: its limits, what it had left when the call
-- began (took microseconds ago), and for how long it wants to be left alone.
-- +goose StatementBegin
CREATE FUNCTION rate_settle(names text[], ours_requests bigint[], ours_tokens bigint[], reserved bigint[], bound bigint, used bigint, learn boolean,
    key_bucket text, told_requests bigint, told_tokens bigint, left_requests bigint, left_tokens bigint, took bigint, pause bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    b      rate_buckets;
    sample integer;
BEGIN
    FOR i IN 1 .. cardinality(names) LOOP
        b := rate_fill(names[i], ours_requests[i], ours_tokens[i]);
        b.tokens := least(b.tokens + (reserved[i] - coalesce(used, reserved[i])) * 1000000, rate_room(rate_limit(ours_tokens[i], b.ceiling_tokens)));
        IF learn AND used IS NOT NULL THEN
            sample := greatest(least(used * 1000 / greatest(bound, 1), 1000), 1);
            b.learned := least(b.learned + 1, 20);
            b.share := greatest(least(b.share + (sample - b.share) / b.learned, 1000), 1);
        END IF;
        IF names[i] = key_bucket THEN
            b.ceiling_requests := coalesce(told_requests, b.ceiling_requests);
            b.ceiling_tokens := coalesce(told_tokens, b.ceiling_tokens);
            b.requests := least(b.requests, left_requests * 1000000 + rate_limit(ours_requests[i], b.ceiling_requests) * took / 60);
            b.tokens := least(b.tokens, left_tokens * 1000000 + rate_limit(ours_tokens[i], b.ceiling_tokens) * took / 60);
            IF pause > 0 THEN
                b.paused_until := greatest(b.paused_until, b.filled_at + pause * interval '1 microsecond');
                b.tokens := least(b.tokens, 0);
            END IF;
        END IF;
        UPDATE rate_buckets r SET filled_at = b.filled_at, requests = b.requests, tokens = b.tokens, paused_until = b.paused_until,
            ceiling_requests = b.ceiling_requests, ceiling_tokens = b.ceiling_tokens, share = b.share, learned = b.learned WHERE r.name = names[i];
    END LOOP;
END $$;
-- +goose StatementEnd
