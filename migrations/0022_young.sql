-- +goose Up

-- Statements that name rows by their key are planned once for each connection. Planned
-- while a table has a handful of rows, they may go through all rows of the tenant, which
-- costs nothing then and a lot later. So tables that have grown several times since they
-- were last looked at are looked at again, and all plans with it; autovacuum does the
-- same, but only a minute later. Large tables are left to it.
-- +goose StatementBegin
CREATE FUNCTION analyze_young_tables() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    young  text;
    looked integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('analyze_young_tables', 0)) THEN
        RETURN 0;
    END IF;
    FOR young IN
        SELECT c.relname FROM pg_class c JOIN pg_stat_user_tables t ON t.relid = c.oid
        WHERE c.oid IN ('runs'::regclass, 'step_runs'::regclass, 'waits'::regclass, 'attempts'::regclass,
                'stored_values'::regclass, 'run_values'::regclass, 'holds'::regclass, 'charges'::regclass)
            AND c.reltuples < 20000 AND t.n_live_tup > 2 * greatest(c.reltuples, 100)
    LOOP
        EXECUTE format('ANALYZE %I', young);
        looked := looked + 1;
    END LOOP;
    RETURN looked;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION analyze_young_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_young_tables() TO tollgate_system;
