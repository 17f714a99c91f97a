package engine

// stuckQueries find each kind. $1 is the age from which a state counts, $2 this worker.
// A job that was fetched and has not claimed its slice for three times that age was lost
// between River and us, as where the answer to the fetch got lost. A slice that waits for
// a slot may be about to join a group; one that is driven is not, for so long.
var stuckQueries = []struct {
	kind  StuckKind
	query string
}{
	{StuckJobGone, `
		SELECT s.tenant_id, s.run_id, s.id, s.fence, s.job_id, NULL::uuid FROM slices s
		WHERE s.state = 'dispatched' AND s.dispatched_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM river.river_job j WHERE j.kind = 'drive_slice' AND j.finalized_at IS NULL
				AND j.args @> jsonb_build_object('slice_id', s.id, 'fence', s.fence)
				AND (j.state <> 'running' OR j.attempted_at > now() - 3 * $1::interval))`},
	{StuckUndriven, `
		SELECT s.tenant_id, s.run_id, s.id, s.fence, s.job_id, NULL::uuid FROM slices s
		WHERE s.state = 'running' AND s.worker_id = $2 AND s.claimed_at < now() - $1::interval
			AND NOT EXISTS (SELECT 1 FROM river.river_job j WHERE j.id = s.job_id AND j.state IN ('retryable', 'available', 'scheduled'))`},
	{StuckNoSlice, `
		SELECT p.tenant_id, p.run_id, NULL::uuid, 0::bigint, NULL::bigint, p.id
		FROM step_runs p JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.state = 'running'
		WHERE p.state = 'running' AND p.kind IN ('ai', 'email') AND p.chosen = '' AND p.begun_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = p.tenant_id AND s.id = p.slice_id)`},
	{StuckNoWait, `
		SELECT p.tenant_id, p.run_id, NULL::uuid, 0::bigint, NULL::bigint, p.id
		FROM step_runs p JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.state = 'running'
		WHERE p.state = 'waiting' AND p.begun_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.tenant_id = p.tenant_id AND w.step_run_id = p.id AND w.state = 'open')
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = p.tenant_id AND s.id = p.slice_id)`},
	{StuckNoStep, `
		SELECT r.tenant_id, r.id, NULL::uuid, 0::bigint, NULL::bigint,
			(SELECT p.id FROM step_runs p WHERE p.tenant_id = r.tenant_id AND p.run_id = r.id ORDER BY p.created_at DESC, p.id DESC LIMIT 1)
		FROM runs r
		WHERE r.state = 'running' AND r.created_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = r.tenant_id AND s.run_id = r.id)
			AND NOT EXISTS (SELECT 1 FROM step_runs p WHERE p.tenant_id = r.tenant_id AND p.run_id = r.id
				AND (p.state = 'queued' OR p.state = 'waiting' OR p.state = 'running' AND p.kind NOT IN ` + groupKinds + ` AND p.` + notCaught + `))
			AND NOT EXISTS (SELECT 1 FROM step_runs p WHERE p.tenant_id = r.tenant_id AND p.run_id = r.id
				AND p.state = 'running' AND (p.kind IN ('each', 'parallel', 'round', 'item', 'lane') OR p.` + caughtRow + `) AND ` + nothingInside + `)`},
	{StuckNoWaker, `
		SELECT w.tenant_id, w.run_id, NULL::uuid, 0::bigint, NULL::bigint, w.step_run_id
		FROM waits w JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id AND r.state = 'running'
		WHERE w.state = 'open' AND w.opened_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND CASE WHEN w.kind IN ('time', 'retry') THEN w.due_at IS NULL
				WHEN w.kind = 'review' THEN NOT EXISTS (SELECT 1 FROM reviews v
					WHERE v.tenant_id = w.tenant_id AND v.step_run_id = w.step_run_id AND v.state = 'open') END`},
	{StuckLostChild, `
		SELECT w.tenant_id, w.run_id, NULL::uuid, 0::bigint, NULL::bigint, w.step_run_id
		FROM waits w JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id AND r.state = 'running'
		WHERE w.state = 'open' AND w.kind = 'child' AND w.opened_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.tenant_id = w.tenant_id AND c.parent_step_run = w.step_run_id
				AND (c.ended_at IS NULL OR c.ended_at > now() - $1::interval))`},
	{StuckSlotLeaked, `
		SELECT s.tenant_id, s.run_id, s.id, s.fence, s.job_id, NULL::uuid
		FROM slices s JOIN runs r ON r.tenant_id = s.tenant_id AND r.id = s.run_id
		WHERE greatest(s.created_at, s.ready_at, s.dispatched_at, s.claimed_at, r.ended_at) < now() - $1::interval AND $2::uuid IS NOT NULL
			AND (r.ended_at IS NOT NULL OR s.state = 'running' AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = s.worker_id))`},
	{StuckJobOrphaned, `
		SELECT (j.args ->> 'tenant_id')::uuid, NULL::uuid, (j.args ->> 'slice_id')::uuid, (j.args ->> 'fence')::bigint, j.id, NULL::uuid
		FROM river.river_job j
		WHERE j.kind = 'drive_slice' AND j.state = 'running' AND j.attempted_at < now() - 3 * $1::interval AND $2::uuid IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = (j.args ->> 'tenant_id')::uuid
				AND s.id = (j.args ->> 'slice_id')::uuid AND s.fence = (j.args ->> 'fence')::bigint)`},
	{StuckUnserved, unservedQuery},
	{StuckLeftPaused, leftPausedQuery},
	{StuckLostJoin, `
		SELECT p.tenant_id, p.run_id, NULL::uuid, 0::bigint, NULL::bigint, p.id
		FROM step_runs p JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.state = 'running'
		WHERE p.state = 'running' AND p.kind IN ('each', 'parallel') AND p.` + notCaught + ` AND p.begun_at < now() - $1::interval AND $2::uuid IS NOT NULL AND ` + nothingInside + `
			AND NOT EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = p.tenant_id AND c.run_id = p.run_id AND c.parent_id = p.id AND c.ended_at > now() - $1::interval)
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = p.tenant_id AND s.run_id = p.run_id AND s.state <> 'running')`},
	{StuckLostPart, `
		SELECT p.tenant_id, p.run_id, NULL::uuid, 0::bigint, NULL::bigint, coalesce((SELECT c.id FROM step_runs c
			WHERE c.tenant_id = p.tenant_id AND c.run_id = p.run_id AND c.parent_id = p.id ORDER BY c.created_at DESC, c.id DESC LIMIT 1), p.id)
		FROM step_runs p JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.state = 'running'
		WHERE p.state = 'running' AND (p.kind IN ('round', 'item', 'lane') OR p.` + caughtRow + `) AND p.begun_at < now() - $1::interval AND $2::uuid IS NOT NULL AND ` + nothingInside + `
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = p.tenant_id AND s.run_id = p.run_id)`},
	{StuckLostItems, `
		SELECT p.tenant_id, p.run_id, NULL::uuid, 0::bigint, NULL::bigint, p.id
		FROM step_runs p JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.state = 'running'
		WHERE p.state = 'running' AND p.kind = 'each' AND p.chosen = '' AND p.begun_at < now() - $1::interval AND $2::uuid IS NOT NULL
			AND EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = p.tenant_id AND c.run_id = p.run_id AND c.parent_id = p.id AND c.state = 'queued')
			AND NOT EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = p.tenant_id AND c.run_id = p.run_id AND c.parent_id = p.id AND c.state = 'running')
			AND NOT EXISTS (SELECT 1 FROM slices s WHERE s.tenant_id = p.tenant_id AND s.run_id = p.run_id)`},
}

// nothingInside tells that nothing right inside the group p is open.
const nothingInside = `NOT EXISTS (SELECT 1 FROM step_runs c WHERE c.tenant_id = p.tenant_id AND c.run_id = p.run_id AND c.parent_id = p.id
	AND c.state IN ('queued', 'running', 'waiting'))`
