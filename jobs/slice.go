package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"tollgate/app/engine"
	"tollgate/tenants"
)

// sliceWorker drives slices.
type sliceWorker struct {
	river.WorkerDefaults[engine.DriveSlice]
	worker *engine.Worker
}

// troublePause is how long a job is left alone while the database is out of reach.
const troublePause = time.Second

// Work hands the slice to the engine. Trouble with the database is no failed try, so
// that no run is given up for it.
func (w *sliceWorker) Work(ctx context.Context, job *river.Job[engine.DriveSlice]) error {
	err := w.worker.Drive(ctx, job.Args, sliceJob{job})
	if tenants.IsTrouble(err) {
		return river.JobSnooze(troublePause)
	}
	return err
}

// sliceJob lets the engine complete a job in the transaction that ends its slice.
type sliceJob struct{ job *river.Job[engine.DriveSlice] }

func (j sliceJob) ID() int64 { return j.job.ID }

func (j sliceJob) Tries() int { return j.job.Attempt }

func (j sliceJob) LastError() string {
	if len(j.job.Errors) == 0 {
		return ""
	}
	return j.job.Errors[len(j.job.Errors)-1].Error
}

// Complete marks the job done. A job that was cancelled meanwhile, because its slice
// was taken over, is done as well.
func (j sliceJob) Complete(ctx context.Context, tx pgx.Tx) error {
	_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j.job)
	if errors.Is(err, rivertype.ErrNotFound) {
		return nil
	}
	return err
}
