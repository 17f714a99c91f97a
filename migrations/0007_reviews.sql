-- +goose Up

-- A question to people. content is what they are shown, byte for byte; digest is what
-- they put their name to, and the check keeps the two together. Reviews outlive their
-- runs, as proof of who allowed what, so no foreign key points to a run.
CREATE TABLE reviews (
    tenant_id       uuid NOT NULL REFERENCES tenants (id),
    id              uuid NOT NULL,
    run_id          uuid NOT NULL,
    step_run_id     uuid NOT NULL,
    round           integer NOT NULL DEFAULT 1 CHECK (round > 0),
    title           text NOT NULL,
    content         text NOT NULL,
    digest          bytea NOT NULL CHECK (digest = sha256(convert_to(content, 'UTF8'))),
    stages          jsonb NOT NULL CHECK (jsonb_array_length(stages) > 0),
    stage           integer NOT NULL DEFAULT 0,
    proof           text NOT NULL CHECK (proof IN ('link', 'link_code', 'sign_in')),
    requester_id    uuid REFERENCES users (id),
    allow_requester boolean NOT NULL,
    send_back       boolean NOT NULL,
    opened_at       timestamptz NOT NULL DEFAULT now(),
    due_at          timestamptz,
    state           text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    outcome         text NOT NULL DEFAULT '' CHECK (outcome IN ('', 'approved', 'rejected', 'sent_back', 'timeout', 'cancelled', 'withdrawn')),
    closed_at       timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, step_run_id, round),
    CHECK ((closed_at IS NOT NULL) = (state = 'closed')),
    CHECK ((outcome <> '') = (state = 'closed'))
);
CREATE UNIQUE INDEX reviews_open ON reviews (tenant_id, step_run_id) WHERE state = 'open';
CREATE INDEX reviews_of_run ON reviews (tenant_id, run_id, id);
CALL protect_tenant_table('reviews',
    'SELECT, INSERT, UPDATE (stage, due_at, state, outcome, closed_at)');

-- One person's place in a review. Its link is a derived token of which only the hash is
-- kept; a new generation of it replaces the old. The system role may look a link up and
-- see nothing else.
CREATE TABLE seats (
    tenant_id    uuid NOT NULL,
    id           uuid NOT NULL,
    review_id    uuid NOT NULL,
    stage        integer NOT NULL DEFAULT 0,
    group_name   text NOT NULL DEFAULT '',
    origin       text NOT NULL DEFAULT 'asked' CHECK (origin IN ('asked', 'delegated', 'escalated')),
    from_seat_id uuid,
    user_id      uuid REFERENCES users (id),
    address      text NOT NULL,
    name         text NOT NULL,
    zone         text NOT NULL,
    token_hash   bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    generation   integer NOT NULL DEFAULT 1 CHECK (generation > 0),
    expires_at   timestamptz NOT NULL,
    state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'closed')),
    closed_at    timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, review_id, stage, address),
    FOREIGN KEY (tenant_id, review_id) REFERENCES reviews (tenant_id, id),
    FOREIGN KEY (tenant_id, from_seat_id) REFERENCES seats (tenant_id, id),
    CHECK ((closed_at IS NULL) = (state = 'open'))
);
CREATE UNIQUE INDEX seats_one_a_user ON seats (tenant_id, review_id, stage, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX seats_waiting ON seats (tenant_id, user_id) WHERE state = 'open';
CREATE INDEX seats_answered ON seats (tenant_id, user_id, closed_at) WHERE state = 'answered';
CALL protect_tenant_table('seats',
    'SELECT, INSERT, UPDATE (token_hash, generation, expires_at, state, closed_at)',
    'SELECT (tenant_id, id, token_hash)');

ALTER TABLE mails ADD FOREIGN KEY (tenant_id, seat_id) REFERENCES seats (tenant_id, id);

-- What was answered, by whom and how they proved it: rows are added, never changed.
CREATE TABLE decisions (
    tenant_id  uuid NOT NULL,
    id         uuid NOT NULL,
    review_id  uuid NOT NULL,
    seat_id    uuid NOT NULL,
    verdict    text NOT NULL CHECK (verdict IN ('approve', 'approve_with_edits', 'send_back', 'reject')),
    comment    text NOT NULL DEFAULT '',
    edits      text NOT NULL DEFAULT '{}',
    digest     bytea NOT NULL CHECK (octet_length(digest) = 32),
    proof      text NOT NULL CHECK (proof IN ('link', 'link_code', 'sign_in')),
    user_id    uuid REFERENCES users (id),
    name       text NOT NULL,
    address    text NOT NULL,
    client     text NOT NULL DEFAULT '',
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, seat_id),
    FOREIGN KEY (tenant_id, review_id) REFERENCES reviews (tenant_id, id),
    FOREIGN KEY (tenant_id, seat_id) REFERENCES seats (tenant_id, id),
    CHECK ((verdict = 'approve_with_edits') = (edits <> '{}'))
);
CREATE INDEX decisions_of_review ON decisions (tenant_id, review_id, id);
CALL protect_tenant_table('decisions', 'SELECT, INSERT');
