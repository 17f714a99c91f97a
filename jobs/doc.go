// Package jobs is where River meets the rooms: its clients, the workers for each kind
// of job, the outside calls that steps make, and the ticks.
//
// A worker's Work loads nothing and decides nothing: it hands the job to a room and
// maps what comes back. Retries of steps are the engine's to count, so River is set to
// try a job again and again after short pauses, without a time limit; a slice that fails
// at every try the engine gives up itself.
//
// Nothing that must happen on time depends on River's leader: beats, take-overs, due
// timers and sweeps are ticks that run in every working process.
//
// Reading order: client.go, quiet.go, slice.go, mail.go, tick.go; then ai.go with
// ai_files.go, and email.go, the calls that steps make.
package jobs
