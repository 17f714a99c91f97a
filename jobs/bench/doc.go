// Package bench measures the engine through its real path, River included, beside two
// things that anybody can have: plain commits on the same Postgres, and a chain of raw
// River jobs in which each completes itself and inserts the next in one transaction.
//
// It holds tests only. TestMeasures does nothing unless it is told which workloads to
// run ("make bench" does); TestMeasuresStillRun runs each in a tiny form, so that it
// does not rot. No figure fails a test: machines differ and are busy, so figures are
// compared within one run, each repetition taking all of them in turn.
//
//	W1  runs of 10 outside steps that do nothing, steps a second from the first
//	    start to the last commit; once with steps that cost nothing, once with money
//	    reserved and booked for each
//	W2  one run of 200 such steps alone: from a step's end to the next one's begin
//	W4  5,000 runs that wait for an event each: what they take of memory and, idle, of the
//	    processor; how long one takes to be woken, and all of them by 8 senders
//	W5  one long run: the pace of its last tenth against that of its first
//	START  from a start's commit to its first step's begin, on an idle system
//	W8  W1 and W2 in tables that hold a million finished step runs
//
// Reading order: measures_test.go (the table's lines), house_test.go (Tollgate as it is
// measured), chain_test.go and plain_test.go (what it is compared with), table_test.go.
package bench
