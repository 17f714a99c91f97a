package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"tollgate/app/engine"
	"tollgate/app/mail"
	"tollgate/tenants"
)

// mailWorker sends mails.
type mailWorker struct {
	river.WorkerDefaults[mail.SendMail]
	db     *tenants.DB
	outbox *mail.Outbox
	id     engine.WorkerID
}

// busyPause is how long to leave a mail alone that another attempt is at.
const busyPause = 5 * time.Second

// Work hands the mail to the outbox.
func (w *mailWorker) Work(ctx context.Context, job *river.Job[mail.SendMail]) error {
	err := w.outbox.Deliver(ctx, w.db, job.Args, w.id)
	switch {
	case errors.Is(err, mail.ErrBusy):
		return river.JobSnooze(busyPause)
	case errors.Is(err, mail.ErrNotFound):
		return river.JobCancel(err)
	}
	return err
}

// recoverMails sends on what dead workers left: mails that they were sending, and jobs
// that they had fetched and not begun.
func recoverMails(ctx context.Context, config Config, jobs *Client) (int, error) {
	recovered := 0
	err := config.DB.InSystemTx(ctx, func(ctx context.Context, tx tenants.SystemTx) error {
		dead, err := config.Worker.Dead(ctx, tx)
		if err != nil || len(dead) == 0 {
			return err
		}
		ids := make([][16]byte, len(dead))
		for i, id := range dead {
			ids[i] = id
		}
		if recovered, err = config.Outbox.Requeue(ctx, tx, ids...); err != nil {
			return err
		}
		again, err := readdMailJobs(ctx, tx, jobs, dead)
		recovered += again
		return err
	})
	return recovered, err
}

// readdMailJobs replaces the jobs that dead workers had fetched. A job too many does no
// harm: whoever comes second finds the mail claimed or sent.
func readdMailJobs(ctx context.Context, tx tenants.SystemTx, jobs *Client, dead []engine.WorkerID) (int, error) {
	rows, _ := tx.Query(ctx, `
		SELECT id, args, metadata FROM river.river_job
		WHERE state = 'running' AND kind = 'send_mail' AND NOT metadata ? 'cancel_attempted_at'
			AND attempted_by[cardinality(attempted_by)] = ANY ($1) LIMIT 500`, names(dead))
	left, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		ID             int64
		Args, Metadata []byte
	}])
	if err != nil {
		return 0, fmt.Errorf("look for the mail jobs of dead workers: %w", err)
	}
	for _, old := range left {
		var args mail.SendMail
		if err := json.Unmarshal(old.Args, &args); err != nil {
			return 0, fmt.Errorf("read a mail job: %w", err)
		}
		if _, err := jobs.InsertTx(ctx, tx.Tx, args, &river.InsertOpts{Queue: mail.Queue, Metadata: old.Metadata}); err != nil {
			return 0, fmt.Errorf("add a mail job again: %w", err)
		}
		if _, err := jobs.JobCancelTx(ctx, tx.Tx, old.ID); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			return 0, fmt.Errorf("cancel the mail job of a dead worker: %w", err)
		}
	}
	return len(left), nil
}

func names(ids []engine.WorkerID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}
