// Package tenants knows who may act, and holds the only doors to the database.
//
// A tenant (a workspace, on screens) is a customer organisation; it owns everything
// else. The package keeps tenants, users, their memberships and roles, sign-in,
// sessions and the audit log. Above all it keeps the tenant-bound transaction:
//
//   - DB.InTx opens a transaction for one tenant and hands out a Tx. Functions that
//     touch a tenant's rows take a Tx, and neither begin nor commit.
//   - DB.Send does the same for a prepared list of statements, in one round trip.
//   - DB.InSystemTx is for the work that comes before a tenant is known or goes across
//     tenants: sign-in, ticks, sweeps. Its type, SystemTx, makes all such places easy
//     to list.
//
// So a query without a tenant does not compile, and forced row-level security is the
// second lock: the app role sees only rows of the tenant that the transaction named.
// The pools stay private to DB, and Open refuses to serve as a role that row-level
// security would not bind.
//
// Callbacks may run more than once (a deadlock or serialization failure is retried),
// and no outside call is made while a transaction is open.
//
// What a tenant keeps secret, for its steps and at providers of models, is sealed under a key
// that the database never holds, and bound to its place there.
//
// Connections to a server that takes no changes are left, a transaction that stands still
// is ended by the server, and nobody waits for a free connection for ever. Behind a pooler
// that shares sessions nothing is set on a session.
//
// Reading order: id.go, db.go, tx.go, batch.go, pool.go, pooler.go, boot.go; then tenant.go, role.go,
// member.go, people.go; email.go, login.go, login_limit.go, session.go, secret.go;
// vault.go, stored_secret.go, provider_key.go, provider_key_open.go, provider_key_change.go,
// rewrap.go; audit.go; demo.go.
package tenants
