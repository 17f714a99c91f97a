package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

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

// sliceJob is a job as the engine sees it. Its completion is left to River's completer,
// which writes many at once: should that get lost, the job is run again and finds that
// its slice has gone on.
type sliceJob struct{ job *river.Job[engine.DriveSlice] }

func (j sliceJob) ID() int64 { return j.job.ID }

func (j sliceJob) Tries() int { return j.job.Attempt }

func (j sliceJob) LastError() string {
	if len(j.job.Errors) == 0 {
		return ""
	}
	return j.job.Errors[len(j.job.Errors)-1].Error
}
