package jobs

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"tollgate/app/engine"
)

// sliceWorker drives slices.
type sliceWorker struct {
	river.WorkerDefaults[engine.DriveSlice]
	worker *engine.Worker
}

// Work hands the slice to the engine.
func (w *sliceWorker) Work(ctx context.Context, job *river.Job[engine.DriveSlice]) error {
	return w.worker.Drive(ctx, job.Args, sliceJob{job})
}

// sliceJob lets the engine complete a job in the transaction that ends its slice.
type sliceJob struct{ job *river.Job[engine.DriveSlice] }

func (j sliceJob) ID() int64 { return j.job.ID }

// Complete marks the job done. A job that was cancelled meanwhile, because its slice
// was taken over, is done as well.
func (j sliceJob) Complete(ctx context.Context, tx pgx.Tx) error {
	_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j.job)
	if errors.Is(err, rivertype.ErrNotFound) {
		return nil
	}
	return err
}
