-- Which server this is: the identifier of its cluster, its timeline, when it was started, and the later one of its clock and of all
-- datasets' times. A standby fails.
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()),
	('x' || lpad(substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint,
	pg_catalog.pg_postmaster_start_time(), greatest(clock_timestamp(), (SELECT max(at) FROM noisegate.chain))
