// Package localdb runs the local mode's own Postgres.
package localdb
