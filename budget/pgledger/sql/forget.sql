-- Ends all runs of a gateway that will not come back. Which timeline that is on shows whether it was on this server before; 0 stands for
-- that of another cluster.
--
-- $1 name  $2 who says so
UPDATE noisegate.gateway SET ended_at = clock_timestamp(), ended_by = $2,
	ended_on = CASE WHEN system = (SELECT system_identifier FROM pg_catalog.pg_control_system())
		THEN ('x' || lpad(substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint ELSE 0 END
WHERE name = $1 AND ended_at IS NULL
