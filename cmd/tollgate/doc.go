// Command tollgate is the whole product: it serves the pages, drives the runs, and
// migrates the database; on a laptop it brings its own Postgres.
//
//	tollgate            everything on this machine, with a demo workspace (also: tollgate dev)
//	tollgate web        serve pages; needs DATABASE_URL
//	tollgate work       drive runs and send mail; needs DATABASE_URL
//	tollgate migrate    bring the database up to this release
//	tollgate seed       make the demo workspace
//	tollgate rewrap     seal anew, under TOLLGATE_SECRET, what TOLLGATE_SECRET_OLD sealed
//	tollgate fakemodels serve pretended models in three formats, for load runs
//
// Reading order: main.go, config.go, wire.go, models.go, then serve.go and work.go for production
// and dev.go, localworker.go and breakit.go for the local mode.
package main
