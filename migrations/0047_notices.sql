-- +goose Up

-- Who is told about the runs of a pipeline, and of what. Without a row its publisher is
-- told of everything. hook_generation numbers the secret that messages to hook_url are
-- signed with; the secret itself is derived and stored nowhere.
CREATE TABLE notice_settings (
    tenant_id       uuid NOT NULL REFERENCES tenants (id),
    pipeline_id     uuid NOT NULL,
    owner_id        uuid REFERENCES users (id),
    backup_id       uuid REFERENCES users (id),
    kinds           text[] NOT NULL,
    hook_url        text NOT NULL DEFAULT '' CHECK (length(hook_url) <= 2000),
    hook_generation integer NOT NULL DEFAULT 1 CHECK (hook_generation > 0),
    changed_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, pipeline_id),
    FOREIGN KEY (tenant_id, pipeline_id) REFERENCES pipelines (tenant_id, id)
);
CALL protect_tenant_table('notice_settings', 'SELECT, INSERT, UPDATE');

-- One trouble of a pipeline, while it lasts: runs that fail, stand still, wait for the cap
-- or for people who decide about a failure, all for one cause. look_at is when there may be
-- something to tell.
CREATE TABLE notices (
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    id          uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('failed', 'stuck', 'exception', 'capped')),
    class       text NOT NULL DEFAULT '',
    step_id     text NOT NULL DEFAULT '',
    sample_run  uuid NOT NULL,
    runs        integer NOT NULL CHECK (runs > 0),
    told_runs   integer NOT NULL DEFAULT 0 CHECK (told_runs >= 0),
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    told_at     timestamptz,
    look_at     timestamptz NOT NULL,
    ended_at    timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, pipeline_id) REFERENCES pipelines (tenant_id, id),
    FOREIGN KEY (tenant_id, sample_run) REFERENCES runs (tenant_id, id)
);
CREATE UNIQUE INDEX notices_lasting ON notices (tenant_id, pipeline_id, kind, class, step_id) WHERE ended_at IS NULL;
CREATE INDEX notices_to_look_at ON notices (look_at) WHERE ended_at IS NULL;
CALL protect_tenant_table('notices', 'SELECT, INSERT, UPDATE', 'SELECT (tenant_id, look_at, ended_at)');

-- The runs of each, once for each time that a run came into such a trouble.
CREATE TABLE notice_runs (
    tenant_id uuid NOT NULL,
    run_id    uuid NOT NULL,
    kind      text NOT NULL,
    since     timestamptz NOT NULL,
    notice_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, run_id, kind, since),
    FOREIGN KEY (tenant_id, notice_id) REFERENCES notices (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id)
);
CREATE INDEX notice_runs_of ON notice_runs (tenant_id, notice_id);
CALL protect_tenant_table('notice_runs', 'SELECT, INSERT', 'SELECT');

-- Messages to another system about them, each sent under its id until it was taken.
CREATE TABLE notice_hooks (
    tenant_id   uuid NOT NULL REFERENCES tenants (id),
    id          uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    url         text NOT NULL,
    generation  integer NOT NULL,
    body        text NOT NULL,
    state       text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
    attempt     integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    claimed_at  timestamptz,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    last_error  text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, pipeline_id) REFERENCES pipelines (tenant_id, id),
    CHECK ((ended_at IS NOT NULL) = (state IN ('sent', 'failed')))
);
CREATE INDEX notice_hooks_due ON notice_hooks (next_try_at) WHERE state IN ('queued', 'sending');
CREATE INDEX notice_hooks_of ON notice_hooks (tenant_id, pipeline_id, id DESC);
CALL protect_tenant_table('notice_hooks', 'SELECT, INSERT',
    'SELECT, UPDATE (state, attempt, claimed_at, next_try_at, last_error, ended_at)');

-- What came about lately, for whoever looks across all tenants.
CREATE INDEX runs_failed_lately ON runs (ended_at) WHERE state = 'failed' AND created_at IS NOT NULL;
CREATE INDEX waits_for_somebody ON waits (opened_at) WHERE state = 'open' AND kind IN ('cap', 'review');

ALTER TABLE mails DROP CONSTRAINT mails_kind_check;
ALTER TABLE mails ADD CONSTRAINT mails_kind_check
    CHECK (kind IN ('review_request', 'login_code', 'step', 'money_request', 'money_answer', 'spend_alert', 'notice'));
