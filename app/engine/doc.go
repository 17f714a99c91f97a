// Package engine is the life of a run: from its start, through steps, waits and
// people, to its one final state.
//
// # State is rows
//
// A run is a row; each execution of a step is a row (step_runs), and nested ones point
// to their parent. That tree is the state, the history and the timeline at once.
// Nothing is replayed: finishing a step reads its row, the groups around it that
// change, and the values that the next step needs, so the cost of a step does not grow
// with the history of its run.
//
// # Decide, then commit
//
// decide is pure: from the definition, a position, what came out there, the values
// that formulas read, and a time it makes a list of changes. The committer applies the
// list with guarded statements (old state and fence in the WHERE, exactly one row) in
// one round trip; if any guard fails, the whole list is void.
//
// # Slices, fences, leases
//
// One River job drives one slice: it carries one branch of one run through its ready
// steps. The commit that finishes a step also begins the next. The slice ends when the
// branch waits or ends; where others wait for its slot, it is handed back behind a step.
// Every worker beats; a slice whose worker fell silent is taken over under a higher
// fence, and a commit with an older fence changes nothing. A job is not the truth, the
// slice is: a job that is run again finds its slice gone on.
//
// # Groups
//
// A step that holds others has a row, and inside that one a row for each part of it: a
// loop for each round, a list for each item, branches side by side one each. Parts and
// the cases of branches are frames: what a formula reads as steps.<id> is looked up in the
// frames around it, never by run and step alone, and behind a loop it is that of the round
// which the loop went on with.
//
// All items are queued rows from the beginning. Slices take them on in blocks and carry
// one after the other; an item that waits leaves its slice free for the next. A slice that
// finds nothing to take on leaves the list; the last one joins it, where nothing in it is
// open any more. Those that leave do so one after the other, under the lock of the list's
// row, and the guard on that row lets one join. A slice counts towards the
// innermost list around it; one that comes late to a group inside an item goes on to that
// list, since others may have left it because of that count. Coming out of a list that
// stands inside an item it counts towards the outer one again at once, which may thereby
// hold one more than may go at once, until the next slice comes to it.
//
// What fails is borne by the item, or by the branch where the first good one counts, and
// else goes on outwards. Whatever else is open inside what failed, was won, or was stopped
// is ended by the same transaction, which has locked the run against all other branches.
//
// A step may say what is done about failures, its own and those inside it. Its row then
// becomes the frame of that: chosen names the entry, the failure stays, and what is done
// are rows inside, whatever kind the step is. Such a row belongs to no slice, counts for no
// list, and ends well with what was done; a failure in there goes on outwards.
//
// # Runs of runs
//
// A step may start a run of another pipeline: its row, the wait for it and the new run are
// one commit (child_start.go). The end of that run, or of the wait, concerns the other run
// only behind its own commit, in a transaction of its own (child_end.go), so that a tree
// is cancelled from the top downwards and no two runs are locked against each other.
//
// # Slots
//
// A slice is born ready, without a job. The pump gives ready slices slots and jobs: to
// the tenant that was not served for longest, within the tenant's quota, the window of
// the list around the slice, and what the live workers can drive. Only one pass is made
// at a time in the whole installation, so what it gives never passes these limits.
//
// # Together
//
// What many slices want of the database at the same time, they want together: commits,
// claims, starts, items of a list, and leaving one, each have a line for each tenant
// (joiner.go), and what stands in it is one transaction with one statement for each kind
// of change. Nobody waits for company.
//
// # Invariants
//
//   - A final state of a run or step run never changes, but that somebody may let a run
//     go on which has failed: then what failed, and what was stopped with it, is open again.
//   - A step run is finished once; the record of an interrupted try says so.
//   - A call that may have arrived is made again only as its step says; where it says
//     "ask", not before a person has answered.
//   - A running step run belongs to a slice; a waiting one has an open wait, or a slice
//     that is about to carry it on. The watchdog finds whatever breaks this.
//   - Outside calls happen between commits, never inside one, and carry a key that is
//     the same for each try, and another one for another model or question.
//   - A step that asks models moves along its chain only forwards, and each call of it has a
//     hold of its own. What follows a failed try is said by follows alone.
//   - Locks are taken in one order: the keys of events, the tree of runs that start each other, the pipeline (by whatever starts
//     its runs), run (shared for steps, exclusive for the run's own state), step runs,
//     waits, ledger, slice, jobs.
//
// Reading order: run.go and steprun.go (the words), decide.go and change.go (the
// rules; decide_begin.go, decide_fail.go, decide_unsure.go, next_try.go, chain.go, chain_follow.go, decide_chain.go, decide_answer.go, money.go and fund.go (what a call may cost, and for whom), decide_catch.go, decide_child.go, and for groups frame.go, scope.go, locate.go,
// reuse.go, decide_repeat.go, decide_ask.go, decide_each.go, decide_parallel.go, decide_wait.go),
// commit.go, commit_flow.go and commit_catch.go (how they become rows), arrive.go, arrive_list.go and
// take_items.go (what a slice finds to do at a group), cancel_below.go, drive.go (one slice from claim to end),
// live_text.go (what people see of a call under way),
// trouble.go (holding on while the database is away), start.go, wake.go, review.go,
// event.go with its neighbours, callback.go, child_start.go and child_end.go, timer.go and capped.go (what sets a branch going),
// pump.go, pump_look.go and pump_allot.go (which slice is next), admit.go (which queued
// run is next), pause.go, fit.go and move.go (which version a run is on), reap.go and watchdog.go with watch_queries.go and
// watch_leaks.go (what repairs), horizon.go (who keeps the tables from being cleaned up),
// cancel.go and giveup.go (what ends a run from outside), retry.go with reopen.go,
// reopen_rows.go and decide_renew.go, skip.go, answer.go and rerun.go with rerun_read.go,
// rerun_start.go, rerun_items.go and rerun_silent.go (what people do to a run, each
// planned by a pure function that its page asks first), bulk.go with bulk_run.go and
// bulk_read.go (what is done to many), replay.go and replay_run.go (a step put to another model), read.go with read_view.go,
// read_group.go, read_part.go, read_versions.go and read_lineage.go with lineage_trace.go
// and lineage_reads.go (what pages ask), operate.go and watch_findings.go (what
// operators ask).
package engine
