package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/app/pipeline"
)

// aged are the figures of W8: W1 and W2 in tables that are full already, beside the
// same in tables that are not.
func aged(t *testing.T, young *house, s size) []*row {
	t.Helper()
	old := newHouse(t)
	old.clock.meter = young.clock.meter
	past := old.publish(t, line(pipeline.KindEmail, stepsOfRun))
	old.fill(t, past, s.history)
	var rows []*row
	for _, workload := range []struct {
		name, unit, bar string
		runs, steps     int
		figure          func(took) float64
	}{
		{"W8 steps", "steps/s", "≥ 0.8 ×", s.runs / 2, stepsOfRun, took.rate},
		{"W8 gap between steps", "ms", "≤ 1.2 ×", 1, s.lone, took.gap},
	} {
		document := line(pipeline.KindEmail, workload.steps)
		empty, full := young.publish(t, document), old.publish(t, document)
		runs := max(workload.runs, 1)
		base := &row{name: workload.name + ", young tables", unit: workload.unit,
			take: func() float64 { return workload.figure(young.run(t, empty, runs, workload.steps)) }}
		rows = append(rows, base, &row{name: fmt.Sprintf("%s, behind %d finished step runs", workload.name, s.history),
			unit: workload.unit, bar: workload.bar, base: base,
			take: func() float64 { return workload.figure(old.run(t, full, runs, workload.steps)) }})
	}
	return rows
}

// fill writes finished runs of ten steps straight into the tables, each step with a
// value of its own.
func (h *house) fill(t *testing.T, id pipeline.ID, steps int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.db.URL)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `SET ROLE tollgate_app`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SELECT set_config('app.tenant_id', $1, false)`, h.tenant.String())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `CREATE TEMP TABLE past AS SELECT n, gen_random_uuid() AS run FROM generate_series(1, $1::int) n`, steps/stepsOfRun)
	require.NoError(t, err)
	for _, statement := range pastRows {
		_, err := conn.Exec(t.Context(), statement, h.tenant, id, steps)
		require.NoError(t, err, statement)
	}
	_, err = conn.Exec(t.Context(), `SET ROLE tollgate_owner; ANALYZE runs, step_runs, stored_values, run_values`)
	require.NoError(t, err)
}

// pastRows take the tenant, the pipeline and the number of step runs.
var pastRows = []string{`
	INSERT INTO runs (tenant_id, id, pipeline_id, version, number, name, state, input_digest, start_key, ended_at)
	SELECT $1, run, $2, 1, -n, 'Past', 'completed', sha256('{}'), 'past ' || n, now() FROM past WHERE $3::int > 0`, `
	INSERT INTO step_runs (tenant_id, id, run_id, step_id, kind, state, output_digest, ended_at)
	SELECT $1, gen_random_uuid(), run, 's' || s, 'email', 'done', sha256((n * 10 + s)::text::bytea), now()
	FROM past, generate_series(0, 9) s WHERE $2::uuid IS NOT NULL AND $3::int > 0`, `
	INSERT INTO stored_values (tenant_id, digest, size, media_type, content)
	SELECT $1, sha256((10 + s)::text::bytea), 60, 'application/json', convert_to('{"message_id": "' || gen_random_uuid() || '"}', 'UTF8')
	FROM generate_series(0, $3::int - 1) s WHERE $2::uuid IS NOT NULL`, `
	INSERT INTO run_values (tenant_id, digest, run_id)
	SELECT $1, sha256((n * 10 + s)::text::bytea), run FROM past, generate_series(0, 9) s WHERE $2::uuid IS NOT NULL AND $3::int > 0`,
}
