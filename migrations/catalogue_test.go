package migrations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"tollgate/migrations/dbtest"
)

// tenantTables is the head of most checks: every table that has a tenant's rows, and
// the column that says whose. A new table with a tenant_id is among them by itself.
const tenantTables = `
	WITH tenant_tables AS (
		SELECT c.oid, c.relname, c.relrowsecurity, c.relforcerowsecurity, a.attname AS key, a.attnum, a.attnotnull
		FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
			AND a.attname = CASE c.relname WHEN 'tenants' THEN 'id' ELSE 'tenant_id' END
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
	) `

// A catalogueCheck lists the offenders against one rule. mistake makes an offender, to
// show that the check finds it; allowed names exceptions, each with its reason.
type catalogueCheck struct {
	rule, offenders, mistake string
	allowed                  map[string]string
}

var catalogueChecks = []catalogueCheck{{
	rule: "row-level security is enabled and forced on every table",
	offenders: `SELECT relname FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND relforcerowsecurity)`,
	mistake: `ALTER TABLE members NO FORCE ROW LEVEL SECURITY`,
	allowed: map[string]string{"goose_db_version": "numbers of migrations; the system role reads them"},
}, {
	rule: "a tenant's table has one policy for the app role, for all commands, on the tenant that the transaction named",
	offenders: tenantTables + `
		SELECT t.relname FROM tenant_tables t WHERE (
			SELECT count(*) <> 1 OR NOT bool_and(p.polcmd = '*'
				AND pg_get_expr(p.polqual, p.polrelid) LIKE '(' || t.key || ' = ( SELECT (NULLIF(current_setting(''app.tenant_id''%'
				AND pg_get_expr(p.polqual, p.polrelid) NOT LIKE '% OR %'
				AND pg_get_expr(p.polqual, p.polrelid) = pg_get_expr(p.polwithcheck, p.polrelid))
			FROM pg_policy p WHERE p.polrelid = t.oid AND 'tollgate_app'::regrole = ANY (p.polroles))`,
	mistake: `CREATE POLICY wide ON runs FOR SELECT TO tollgate_app USING (true)`,
}, {
	rule: "no policy is for PUBLIC or any other role",
	offenders: `SELECT polrelid::regclass || '.' || polname FROM pg_policy
		WHERE polroles <> ARRAY['tollgate_app'::regrole::oid] AND polroles <> ARRAY['tollgate_system'::regrole::oid]`,
	mistake: `CREATE POLICY wide ON runs USING (true)`,
}, {
	rule: "a foreign key between tenants' tables begins with the tenant on both sides",
	offenders: tenantTables + `
		SELECT f.conname FROM pg_constraint f
		JOIN tenant_tables t ON t.oid = f.conrelid JOIN tenant_tables o ON o.oid = f.confrelid
		WHERE f.contype = 'f' AND (f.conkey[1] <> t.attnum OR f.confkey[1] <> o.attnum)`,
	mistake: `CREATE TABLE notes (tenant_id uuid PRIMARY KEY, other uuid REFERENCES mails (id))`,
}, {
	rule: "a foreign key to tenants is the column tenant_id",
	offenders: `SELECT f.conname FROM pg_constraint f
		JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
		WHERE f.contype = 'f' AND f.confrelid = 'tenants'::regclass AND a.attname <> 'tenant_id'`,
	mistake: `CREATE TABLE notes (id uuid PRIMARY KEY, owner_tenant uuid REFERENCES tenants (id))`,
}, {
	rule: "unique keys, the primary one among them, begin with the tenant: a clash must not tell of another's row",
	offenders: tenantTables + `
		SELECT i.indexrelid::regclass::text FROM pg_index i JOIN tenant_tables t ON t.oid = i.indrelid
		WHERE i.indisunique AND i.indkey[0] <> t.attnum`,
	mistake: `CREATE UNIQUE INDEX pipelines_name ON pipelines (name)`,
	allowed: map[string]string{
		"mails_pkey":                "mails of the system have no tenant; the id is random and made by us",
		"mails_message_id_key":      "holds the mail's random id, made by us",
		"seats_token_hash_key":      "a link is found by its hash before its tenant is known; nobody can choose one",
		"run_shares_token_hash_key": "a link is found by its hash before its tenant is known; nobody can choose one",
	},
}, {
	rule: "every table has a primary key",
	offenders: `SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
		AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`,
	mistake: `CREATE TABLE notes (tenant_id uuid)`,
}, {
	rule: "tenant_id is never null",
	offenders: tenantTables + `
		SELECT relname FROM tenant_tables WHERE NOT attnotnull`,
	mistake: `ALTER TABLE charges DROP CONSTRAINT charges_pkey; ALTER TABLE charges ALTER tenant_id DROP NOT NULL`,
	allowed: map[string]string{"mails": "a mail with a sign-in code comes before any tenant; null is no tenant's row"},
}, {
	rule: "a table without a tenant is on the list of the system's",
	offenders: `SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'tenants'
		AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)`,
	mistake: `CREATE TABLE notes (id uuid PRIMARY KEY)`,
	allowed: map[string]string{
		"users":            "a person may be in several tenants; each sees its own members",
		"login_codes":      "signing in comes before any tenant",
		"sessions":         "signing in comes before any tenant",
		"workers":          "processes of the installation",
		"rate_buckets":     "the installation's own keys are shared by all workspaces",
		"goose_db_version": "which migrations were applied",
	},
}, {
	rule: "the app role reaches no table of the system's",
	offenders: `SELECT c.relname || ' ' || p.name FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p (name)
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'tenants'
		AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
		AND (has_any_column_privilege('tollgate_app', c.oid, p.name) OR has_table_privilege('tollgate_app', c.oid, 'DELETE'))`,
	mistake: `GRANT SELECT (email) ON login_codes TO tollgate_app`,
	allowed: map[string]string{"users SELECT": "by a policy that shows a tenant its members"},
}, {
	rule: "neither role has rights that only an owner needs, nor the app role any in River's other tables",
	offenders: `SELECT c.oid::regclass || ' ' || p.name || ' ' || r.rolname
		FROM pg_class c, pg_roles r, unnest(ARRAY['TRUNCATE', 'REFERENCES', 'TRIGGER', 'DELETE', 'SELECT']) p (name)
		WHERE c.relkind IN ('r', 'p') AND r.rolname IN ('tollgate_app', 'tollgate_system') AND has_table_privilege(r.oid, c.oid, p.name)
		AND (c.relnamespace = 'public'::regnamespace AND p.name IN ('TRUNCATE', 'REFERENCES', 'TRIGGER')
			OR c.relnamespace = 'river'::regnamespace AND r.rolname = 'tollgate_app' AND NOT (c.relname = 'river_job' AND p.name = 'SELECT'))`,
	mistake: `GRANT TRUNCATE ON runs TO tollgate_app`,
}, {
	rule: "what is kept as proof can be added and read, never changed or deleted",
	offenders: `SELECT c.relname || ' ' || r.rolname FROM pg_class c, pg_roles r
		WHERE r.rolname IN ('tollgate_app', 'tollgate_system') AND c.relnamespace = 'public'::regnamespace
		AND c.relname IN ('audit_entries', 'pipeline_versions', 'attempts', 'charges', 'corrections', 'decisions', 'stored_values', 'stored_value_chunks')
		AND (has_any_column_privilege(r.oid, c.oid, 'UPDATE') OR has_table_privilege(r.oid, c.oid, 'DELETE'))`,
	mistake: `GRANT UPDATE (comment) ON decisions TO tollgate_app`,
}, {
	rule: "all tables, views and functions belong to the owner role, and PUBLIC has no right to a table",
	offenders: `SELECT c.oid::regclass::text FROM pg_class c
		WHERE c.relnamespace IN ('public'::regnamespace, 'river'::regnamespace) AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
		AND (c.relowner <> 'tollgate_owner'::regrole OR EXISTS (SELECT 1 FROM aclexplode(c.relacl) a WHERE a.grantee = 0))
		UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> 'tollgate_owner'::regrole`,
	mistake: `GRANT SELECT ON runs TO PUBLIC`,
}, {
	rule: "no function or view works with its owner's rights",
	offenders: `SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef
		UNION ALL SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
		AND (relkind = 'm' OR relkind = 'v' AND NOT coalesce(reloptions @> ARRAY['security_invoker=true'], false))`,
	mistake: `CREATE VIEW all_runs AS SELECT id FROM runs`,
	allowed: map[string]string{"analyze_young_tables()": "only an owner may analyse; it takes nothing, gives a number, and reads no row for anybody"},
}, {
	rule: "the serving roles are plain and in no other role of ours",
	offenders: `SELECT r.rolname FROM pg_roles r
		WHERE r.rolname IN ('tollgate_app', 'tollgate_system')
		AND (r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb
			OR pg_has_role(r.oid, 'tollgate_owner', 'MEMBER')
			OR EXISTS (SELECT 1 FROM pg_auth_members m WHERE m.member = r.oid))`,
}}

func TestCatalogueKeepsTheRules(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	super := db.Super(t)
	for _, check := range catalogueChecks {
		t.Run(check.rule, func(t *testing.T) {
			rows, _ := super.Query(t.Context(), check.offenders)
			offenders, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			for _, name := range offenders {
				require.Contains(t, check.allowed, name, "against the rule; change the migration, or give an exception with its reason here")
			}
			for name := range check.allowed {
				require.Contains(t, offenders, name, "this exception is needed no longer")
			}
		})
	}
}

func TestCatalogueChecksFindMistakes(t *testing.T) {
	t.Parallel()
	super := dbtest.Open(t).Super(t)
	for _, check := range catalogueChecks {
		if check.mistake == "" {
			continue // roles belong to the whole server; a test leaves them alone
		}
		t.Run(check.rule, func(t *testing.T) {
			tx, err := super.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), check.mistake)
			require.NoError(t, err)
			rows, _ := tx.Query(t.Context(), check.offenders)
			offenders, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Greater(t, len(offenders), len(check.allowed))
		})
	}
}

// systemGrants is all that cross-tenant work may do. Whatever is added here reaches all
// tenants' rows, so it needs a reason.
var systemGrants = map[string]string{
	"tenants":           "INSERT, SELECT",                                                                 // the first sign-in, the list of workspaces
	"users":             "INSERT, SELECT, UPDATE",                                                         // sign-in
	"members":           "INSERT, SELECT",                                                                 // the first owner, the list of workspaces
	"login_codes":       "DELETE, INSERT, SELECT, UPDATE",                                                 // sign-in
	"sessions":          "DELETE, INSERT, SELECT, UPDATE",                                                 // sign-in
	"notice_hooks":      "SELECT, UPDATE (attempt, claimed_at, ended_at, last_error, next_try_at, state)", // messages to other systems
	"notice_runs":       "SELECT",                                                                         // which runs in trouble were taken up
	"run_shares":        "SELECT (id, tenant_id, token_hash)",                                             // whose link it is
	"notices":           "SELECT (ended_at, look_at, tenant_id)",                                          // for whom there is something to tell
	"live_texts":        "DELETE, SELECT (step_run_id, tenant_id, written_at)",                            // what dead workers left
	"goose_db_version":  "SELECT",                                                                         // is the database at this release?
	"audit_entries":     "INSERT",                                                                         // a workspace was made
	"bulk_jobs":         "SELECT (id, state, tenant_id)",                                                  // what is open, of everybody
	"caps":              "SELECT",                                                                         // whose caps alerts are looked for
	"cap_alerts":        "SELECT",                                                                         // which are not told yet
	"workers":           "DELETE, INSERT, SELECT, UPDATE",                                                 // beats
	"watch_findings":    "DELETE, INSERT, SELECT, UPDATE",                                                 // the watchdog looks at all tenants
	"pipelines":         "SELECT",                                                                         // ticks that go through all tenants' runs
	"pipeline_versions": "SELECT",
	"runs":              "SELECT",
	"step_results":      "SELECT (expires_at, tenant_id)",
	"step_runs":         "SELECT",
	"waits":             "SELECT",
	"slices":            "SELECT, UPDATE (crowded, dispatched_at, state)",        // giving slots
	"events":            "SELECT (id, key, name, sent_at, spreading, tenant_id)", // spreading and pruning
	"reviews":           "SELECT (state, step_run_id, tenant_id)",                // the watchdog: is it still open?
	"tenant_quotas":     "SELECT",
	"provider_keys":     "SELECT (id, old_until, tenant_id), UPDATE (old_base_url, old_hint, old_key_id, old_sealed, old_until)", // erasing what a rotation left
	"rate_buckets":      "DELETE, INSERT, SELECT, UPDATE",                                                                        // the installation's own keys are shared by all
	"rate_tickets":      "DELETE, INSERT, SELECT, UPDATE",
	"replays":           "SELECT (id, not_before, state, tenant_id, worker_id)", // which replays are due
	"tenant_turns":      "INSERT, SELECT, UPDATE",
	"holds":             "SELECT",                                                                                           // sweep of holds that were left open
	"seats":             "SELECT (id, tenant_id, token_hash)",                                                               // which tenant a link belongs to
	"mails":             "INSERT, SELECT, UPDATE (attempt, claimed_at, last_error, next_try_at, sent_at, state, worker_id)", // sign-in codes; sending
}

func TestSystemRoleHasExactlyTheListedGrants(t *testing.T) {
	t.Parallel()
	super := dbtest.Open(t).Super(t)
	const query = `
		WITH grants AS (
			SELECT c.relname, a.privilege_type AS privilege, NULL::name AS attname
			FROM pg_class c, aclexplode(c.relacl) a
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND a.grantee = 'tollgate_system'::regrole
			UNION ALL
			SELECT c.relname, x.privilege_type, a.attname
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) x
			WHERE c.relnamespace = 'public'::regnamespace AND x.grantee = 'tollgate_system'::regrole
		)
		SELECT relname, privilege, coalesce(string_agg(attname, ', ' ORDER BY attname), '')
		FROM grants GROUP BY 1, 2 ORDER BY 1, 2`
	rows, err := super.Query(t.Context(), query)
	require.NoError(t, err)
	lists := map[string][]string{}
	var table, privilege, columns string
	_, err = pgx.ForEachRow(rows, []any{&table, &privilege, &columns}, func() error {
		if columns != "" {
			privilege += " (" + columns + ")"
		}
		lists[table] = append(lists[table], privilege)
		return nil
	})
	require.NoError(t, err)
	grants := map[string]string{}
	for table, list := range lists {
		grants[table] = strings.Join(list, ", ")
	}
	require.Empty(t, cmp.Diff(systemGrants, grants), "the system role's rights differ from the list (-list +database)")
}
