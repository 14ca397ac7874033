-- The four PostgreSQL roles of Noisegate, and what nobody but a superuser may do beside them.
--
-- Run it as a superuser, once in every protected database and once in the control database; running it again changes
-- nothing. It sets no passwords: use \password, or authenticate with peer or certificates.
--
--   noisegate_owner   runs migrations in the control database; owns the schema noisegate
--   noisegate         is the gateway in the control database: ledger, policies, releases
--   noisegate_reader  is the gateway in a protected database: SELECT on the registered tables, nothing else:
--                       GRANT SELECT ON public.people TO noisegate_reader;
--   noisegate_prepare makes prepared copies in a protected database, in the schema noisegate_prepared and nowhere else:
--                       GRANT SELECT ON public.visits TO noisegate_prepare;
--
-- The REVOKEs at the end touch everyone in this database, because rights of PUBLIC cannot be taken from one role alone. A
-- protected database is best one of its own (a replica, say). An application that needs such a function gets it by name:
--   GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_lock(bigint) TO my_application;

DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['noisegate_owner', 'noisegate', 'noisegate_reader', 'noisegate_prepare'] LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE format('CREATE ROLE %I', role);
		END IF;
		EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT', role);
		-- No name is looked for where somebody else could have planted one.
		EXECUTE format($q$ALTER ROLE %I SET search_path = ''$q$, role);
	END LOOP;
END
$$;

ALTER ROLE noisegate_owner SET lock_timeout = '10s';

ALTER ROLE noisegate CONNECTION LIMIT 128;
ALTER ROLE noisegate SET statement_timeout = '10s';
ALTER ROLE noisegate SET lock_timeout = '5s';
ALTER ROLE noisegate SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE noisegate SET synchronous_commit = 'on';
ALTER ROLE noisegate SET jit = 'off';

ALTER ROLE noisegate_reader CONNECTION LIMIT 64;
ALTER ROLE noisegate_reader SET default_transaction_read_only = 'on';
ALTER ROLE noisegate_reader SET statement_timeout = '60s';
ALTER ROLE noisegate_reader SET lock_timeout = '5s';
ALTER ROLE noisegate_reader SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE noisegate_reader SET work_mem = '16MB';
ALTER ROLE noisegate_reader SET temp_file_limit = '8GB';
ALTER ROLE noisegate_reader SET jit = 'off';
-- An error raised while private rows are read may quote them, and so may the statement's parameters.
ALTER ROLE noisegate_reader SET log_min_error_statement = 'panic';
ALTER ROLE noisegate_reader SET log_parameter_max_length_on_error = '0';
ALTER ROLE noisegate_reader SET log_statement = 'none';
ALTER ROLE noisegate_reader SET log_parameter_max_length = '0'; -- secret seeds, where slow statements are logged

ALTER ROLE noisegate_prepare CONNECTION LIMIT 4;
ALTER ROLE noisegate_prepare SET jit = 'off';
-- What a row that breaks a constraint holds stands in the detail of an error.
ALTER ROLE noisegate_prepare SET log_error_verbosity = 'terse';
ALTER ROLE noisegate_prepare SET log_min_error_statement = 'panic';
ALTER ROLE noisegate_prepare SET log_parameter_max_length_on_error = '0';
ALTER ROLE noisegate_prepare SET log_statement = 'none';
ALTER ROLE noisegate_prepare SET log_parameter_max_length = '0'; -- secret seeds, where slow statements are logged
CREATE SCHEMA IF NOT EXISTS noisegate_prepared AUTHORIZATION noisegate_prepare;

DO $$
DECLARE
	fn regprocedure;
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'public') THEN
		REVOKE CREATE ON SCHEMA public FROM PUBLIC;
	END IF;
	EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
	FOR fn IN
		SELECT p.oid::regprocedure
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'pg_catalog'::regnamespace AND (
			-- Large objects can be written even in a read-only transaction.
			   p.proname ~ '^(lo_|loread$|lowrite$)'
			-- Functions that run SQL given as text.
			OR p.proname ~ '^(query|table|schema|database|cursor)_to_xml' OR p.proname = 'ts_stat'
			-- Functions that wait, lock, or tell other sessions something.
			OR p.proname ~ '^pg_sleep' OR p.proname ~ '^pg_(try_)?advisory_' OR p.proname IN ('pg_notify', 'set_config')
			-- Functions that act on other sessions of the same role.
			OR p.proname IN ('pg_cancel_backend', 'pg_terminate_backend')
		)
		AND pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE')
	LOOP
		EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', fn);
	END LOOP;
END
$$;
