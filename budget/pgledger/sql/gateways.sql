-- The gateways that did not end, oldest first.
SELECT run, name, system, timeline, postmaster, heads::text, started_at, seen_at, postmaster = pg_catalog.pg_postmaster_start_time()
FROM noisegate.gateway WHERE ended_at IS NULL ORDER BY started_at, run
