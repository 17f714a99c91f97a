package tenants

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsTrouble tells that the database is out of reach, goes down or has no room just now,
// as opposed to having refused what was asked. The same may work a moment later. Unless
// the connection was never made, the transaction may have been committed all the same:
// whoever tries again must find out first.
func IsTrouble(err error) bool {
	if err == nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return troubled(pg.Code)
	}
	var refused *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &refused) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, context.DeadlineExceeded)
}

// troubled tells it by SQLSTATE: the class of broken connections, that of missing
// resources, that of an operator's stop without a cancelled statement, a server that
// takes no changes, as after a fail-over, a transaction that the server ended because we
// stood still in it, and races that outlasted their tries.
func troubled(code string) bool {
	const statementCancelled, idleInTransaction = "57014", "25P03"
	switch {
	case len(code) != 5 || code == statementCancelled:
		return false
	case code[:2] == "08", code[:2] == "53", code[:2] == "57":
		return true
	}
	return code == serializationFailure || code == deadlock || code == readOnlyServer || code == idleInTransaction
}
