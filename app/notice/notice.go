package notice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/app/mail"
	"tollgate/app/pipeline"
	"tollgate/tenants"
)

// ID identifies a notice.
type ID = tenants.IDOf[Notice]

// Kind is a way in which runs are in trouble.
type Kind string

// The kinds, equal to the list in the table's check.
const (
	Failed    Kind = "failed"
	Stuck     Kind = "stuck"     // stands still, and the watchdog could not mend it
	Exception Kind = "exception" // waits for people to decide about a failure
	Capped    Kind = "capped"    // waits for the AI spend cap
)

// Kinds are all of them, in the order in which they are offered.
func Kinds() []Kind { return []Kind{Failed, Stuck, Exception, Capped} }

// Notice is one trouble of a pipeline, while it lasts.
type Notice struct {
	ID       ID
	Pipeline pipeline.ID
	Kind     Kind
	Class    string // of the failure; empty where none has to do with it
	StepID   string // where; empty where it is about no step
	Sample   [16]byte
	Runs     int // that came into it
	Told     int // of these, when it was last told
	FirstAt  time.Time
	LastAt   time.Time
	ToldAt   *time.Time
	EndedAt  *time.Time
}

// Config is what the room needs.
type Config struct {
	DB     *tenants.DB
	Outbox *mail.Outbox
	Secret tenants.Secret                                  // signs messages to other systems
	Path   func(tenant tenants.ID, parts ...string) string // of a workspace's page, without the host
	Host   string                                          // of the pages, without a slash at its end
}

// Room tells people.
type Room struct{ Config }

// New makes the room.
func New(config Config) *Room { return &Room{config} }

const noticeColumns = `id, pipeline_id, kind, class, step_id, sample_run, runs, told_runs, first_at, last_at, told_at, ended_at`

// Lasting reads the notices of a pipeline that are not over, the newest first.
func Lasting(ctx context.Context, tx tenants.Tx, of pipeline.ID) ([]Notice, error) {
	return notices(ctx, tx, `pipeline_id = $2 AND ended_at IS NULL ORDER BY last_at DESC LIMIT 20`, of)
}

func notices(ctx context.Context, tx tenants.Tx, where string, args ...any) ([]Notice, error) {
	rows, _ := tx.Query(ctx, `SELECT `+noticeColumns+` FROM notices WHERE tenant_id = $1 AND `+where, append([]any{tx.Tenant}, args...)...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Notice])
	if err != nil {
		return nil, fmt.Errorf("read notices: %w", err)
	}
	return found, nil
}
