package fault_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/apptest/fault"
	"tollgate/migrations/dbtest"
)

// A frozen process says nothing, a thawed one goes on, and a killed one is gone.
func TestProcessIsFrozenThawedAndKilled(t *testing.T) {
	t.Parallel()
	p := fault.Start(t, "/bin/sh", []string{"-c", "while :; do echo alive; sleep 0.02; done"}, nil)
	p.AwaitLine("alive", 5*time.Second)
	p.Freeze()
	time.Sleep(100 * time.Millisecond) // what it had written may still be on its way
	frozen := p.Output()
	require.Never(t, func() bool { return p.Output() != frozen }, 200*time.Millisecond, 20*time.Millisecond)
	p.Thaw()
	require.Eventually(t, func() bool { return p.Output() != frozen }, 5*time.Second, 10*time.Millisecond)
	p.Kill()
	require.True(t, p.Ended())
	require.Equal(t, -1, p.ExitCode())
	require.ErrorIs(t, syscall.Kill(p.PID(), 0), syscall.ESRCH)
}

// echo is a server that sends back each line.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// say sends a line through the proxy and returns how long the answer took.
func say(t *testing.T, conn net.Conn, line string) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	_, _ = fmt.Fprintln(conn, line)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(2*time.Second)))
	_, err := bufio.NewReader(conn).ReadString('\n')
	return time.Since(began), err
}

func TestProxyDelaysPausesCutsAndLoses(t *testing.T) {
	t.Parallel()
	p := fault.NewProxy(t, echo(t))
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn := dial()
	_, err := say(t, conn, "hello")
	require.NoError(t, err)

	p.Delay(100 * time.Millisecond)
	took, err := say(t, conn, "slow")
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, 200*time.Millisecond, "once in each direction")
	p.Delay(0)

	p.Pause()
	time.AfterFunc(150*time.Millisecond, p.Resume)
	took, err = say(t, conn, "paused")
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, 150*time.Millisecond)

	lost := p.Lose(func(message []byte) bool { return string(message) == "lost\n" })
	_, err = say(t, conn, "not yet")
	require.NoError(t, err)
	_, err = say(t, conn, "lost")
	require.Error(t, err)
	<-lost

	conn = dial()
	_, err = say(t, conn, "again")
	require.NoError(t, err)
	p.Cut()
	_, err = say(t, conn, "cut")
	require.Error(t, err)
	p.Refuse(true)
	_, err = say(t, dial(), "refused")
	require.Error(t, err)
	p.Refuse(false)
	_, err = say(t, dial(), "welcome")
	require.NoError(t, err)
}

// What a transaction has read can change before it writes.
func TestGateHoldsATransactionBeforeItsStatement(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	tenant, _ := db.Tenant(t)
	super := db.Super(t)
	gate := fault.NewGate(t, super.Config().ConnString(), `BEFORE UPDATE ON tenants FOR EACH STATEMENT`)
	rename := func() error {
		_, err := super.Exec(context.Background(), `UPDATE tenants SET name = 'held' WHERE id = $1`, tenant)
		return err
	}
	require.NoError(t, rename(), "an open gate holds nobody")
	gate.Close()
	done := make(chan error)
	go func() { done <- rename() }()
	gate.AwaitHeld()
	_, err := super.Exec(t.Context(), `DELETE FROM members`)
	require.NoError(t, err, "what the gate does not name goes through")
	_, err = super.Exec(t.Context(), `UPDATE tenants SET name = name WHERE false`)
	require.NoError(t, err, "so does whoever comes second")
	gate.Open()
	require.NoError(t, <-done)
}

// A crash loses nothing that was committed, and the server comes back on its address.
func TestPostgresCrashesAndComesBack(t *testing.T) {
	t.Parallel()
	p := fault.StartPostgres(t)
	ask := func(query string) error {
		conn, err := pgx.Connect(t.Context(), p.SuperURL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), query)
		return err
	}
	before, err := pgx.Connect(t.Context(), p.URL())
	require.NoError(t, err)
	defer before.Close(context.Background())
	require.NoError(t, ask(`CREATE TABLE kept AS SELECT 1 AS n`))
	p.Crash()
	require.Error(t, before.Ping(t.Context()))
	require.NoError(t, ask(`SELECT n FROM kept`))
	p.Restart()
	require.NoError(t, ask(`SELECT n FROM kept`))
}
