package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// plain makes the least commit that a durable step needs: a row added, a row changed,
// both sent in one round trip.
type plain struct{ pool *pgxpool.Pool }

const plainRows = 100_000

func newPlain(t *testing.T, server string) plain {
	t.Helper()
	pool := emptyDatabase(t, server, 16)
	_, err := pool.Exec(t.Context(), `
		CREATE TABLE added (id bigserial PRIMARY KEY, job bigint NOT NULL, output jsonb NOT NULL);
		CREATE TABLE changed (id bigint PRIMARY KEY, state text NOT NULL, steps bigint NOT NULL)`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO changed SELECT n, 'running', 0 FROM generate_series(1, $1::bigint) n`, plainRows)
	require.NoError(t, err)
	return plain{pool}
}

// rate is how many commits a second so many clients make together.
func (p plain) rate(t *testing.T, clients int, long time.Duration) float64 {
	t.Helper()
	var commits atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	began := time.Now()
	for n := range clients {
		group.Go(func() error {
			for id := n; time.Since(began) < long; id += clients {
				if err := p.commit(ctx, int64(id%plainRows)+1); err != nil {
					return err
				}
				commits.Add(1)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	return float64(commits.Load()) / time.Since(began).Seconds()
}

func (p plain) commit(ctx context.Context, id int64) error {
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO added (job, output) VALUES ($1, '{}')`, id)
	batch.Queue(`UPDATE changed SET state = 'completed', steps = steps + 1 WHERE id = $1`, id)
	return p.pool.SendBatch(ctx, batch).Close() // one implicit transaction
}

// emptyDatabase makes a database on the server that goes with the test.
func emptyDatabase(t *testing.T, server string, conns int32) *pgxpool.Pool {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server)
	require.NoError(t, err)
	name := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	config, err := pgxpool.ParseConfig(server)
	require.NoError(t, err)
	config.ConnConfig.Database, config.MaxConns = name, conns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		pool.Close()
		_, _ = admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		_ = admin.Close(context.Background())
	})
	return pool
}
