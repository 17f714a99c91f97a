// Package review asks people, and keeps what they answered.
//
// A review is one question of one step run. It has a seat for each person who is asked,
// and every seat has a link of its own. A decision is what somebody answered from a
// seat; it is never changed. The policy says how many decisions end the review.
//
// What always holds:
//
//   - Looking changes nothing. Only Decide does, and a seat is answered once: the same
//     answer again gives back what was recorded, another one is refused.
//   - An answer is bound to the digest of what was shown. Content cannot change without
//     its digest; an answer to something else is refused.
//   - Who may answer is judged in one place, judge, for the page and for the answer
//     alike: by link and by signed-in member, the requester, a removed member, the
//     proof that is asked for, the deadline.
//   - A review that nobody may decide is not opened. Silence never approves: it closes
//     the review as timed out, and what follows is not decided here.
//   - Everything is judged under the lock of the review's row, by the database's clock
//     read after the lock was had. The first commit wins; the loser is told.
//   - The time to answer begins when somebody could: at once where a member is asked,
//     who finds it in her inbox, else when the first mail was taken by its server.
//   - The database holds only hashes of links. They are derived from the server's
//     secret and are made again when the mail is sent.
//
// The package knows a run by its id only and never writes to it; what an answer means
// for the run is the engine's part. It is called in the engine's transaction.
//
// Reading order: question.go, policy.go, open.go, people.go; judge.go, decide.go,
// close.go; link.go, read.go; field.go, store.go.
package review
