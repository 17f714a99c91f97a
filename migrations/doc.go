// Package migrations holds the database's shape, as numbered SQL files, and the
// runner that brings a database up to it.
//
// The order is: roles (outside any migration, since roles belong to the whole
// server), then the numbered files by goose, one transaction each, with River's
// own tables as number 1. Everything is created by the role tollgate_owner, which
// never serves a request.
//
// Three roles share the work (see package tenants):
//
//   - tollgate_owner owns tables and migrates.
//   - tollgate_app reads and writes one tenant's rows, by row-level security.
//   - tollgate_system does the listed cross-tenant work, by policies of its own.
//
// Migrations only go forward, and each must leave the previous release running:
// first expand, then, a release later, contract.
//
// A table is written by one room only; Owners says which. Read 0002_tenants.sql
// first: it defines the procedures that every later file protects its tables with.
package migrations
