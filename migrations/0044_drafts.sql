-- +goose Up

-- Grows with each change of a draft, so that a form can say which draft it was drawn for.
ALTER TABLE pipelines ADD COLUMN draft_revision bigint NOT NULL DEFAULT 0;

-- The last changes of each draft. An edit that is done keeps the draft as it was before;
-- one that was undone keeps what came of it. The key is that of the form which asked for it.
CREATE TABLE draft_edits (
    tenant_id   uuid NOT NULL,
    pipeline_id uuid NOT NULL,
    number      bigint NOT NULL,
    key         text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    says        text NOT NULL,
    step        text NOT NULL DEFAULT '',
    document    text NOT NULL,
    undone      boolean NOT NULL DEFAULT false,
    made_by     uuid REFERENCES users (id),
    made_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, pipeline_id, number),
    UNIQUE (tenant_id, pipeline_id, key),
    FOREIGN KEY (tenant_id, pipeline_id) REFERENCES pipelines (tenant_id, id)
);
CALL protect_tenant_table('draft_edits', 'SELECT, INSERT, UPDATE, DELETE');
