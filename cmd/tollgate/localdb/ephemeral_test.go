//go:build unix

package localdb

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestEphemeralServerServesBothLoginsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Ephemeral: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.Background()) })

	require.Equal(t, []string{"tollgate", "false", "true"}, query(t, s.URL(),
		`select current_user, rolsuper::text, rolcreaterole::text from pg_roles where rolname = current_user`))
	require.Equal(t, []string{"postgres", "off", "200"}, query(t, s.SuperURL(),
		`select current_user, current_setting('fsync'), current_setting('max_connections')`))
	require.Equal(t, []string{"tollgate"}, query(t, s.URL(),
		`select pg_get_userbyid(datdba) from pg_database where datname = current_database()`))

	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "a second Stop is harmless")
	require.NoDirExists(t, s.home.dir)
	_, err = pgx.Connect(t.Context(), s.URL())
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrExist)
}

// query returns the columns of one row as text.
func query(t *testing.T, url, sql string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	row, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) ([]string, error) {
		values, err := r.Values()
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i], _ = v.(string)
		}
		return texts, err
	})
	require.NoError(t, err)
	return row
}
