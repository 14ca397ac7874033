-- Which server this is: the identifier of its cluster, its timeline, and when it was started. A standby fails.
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()),
	('x' || lpad(substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint,
	pg_catalog.pg_postmaster_start_time()
