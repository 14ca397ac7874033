-- Prepares the control database for noisegate migrate. Run it there as a superuser, after roles.sql; running it again
-- changes nothing.

CREATE SCHEMA IF NOT EXISTS noisegate AUTHORIZATION noisegate_owner;
ALTER SCHEMA noisegate OWNER TO noisegate_owner;

-- Migrations of several processes wait for each other.
GRANT EXECUTE ON FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) TO noisegate_owner, noisegate;
