-- Writes down that a run of a gateway is there, on which server it found the newest entries that it knows, and these.
-- One that was taken for ended is back. It ends runs of others that were not seen for a minute: what they knew when they
-- were seen last is on this server, and this gateway has read where its chains end. One that only slept is back with its
-- next beat. On another server than that nothing is written: the gateway has not looked there yet.
--
-- $1 run  $2 name  $3 system identifier  $4 timeline  $5 start of the server  $6 heads
-- $7 whether patience is at its end with those which had them last on this timeline (sql/confirm.sql)
WITH unseen AS (
	SELECT run FROM noisegate.gateway
	WHERE $5 = pg_catalog.pg_postmaster_start_time() AND ended_at IS NULL AND run <> $1 AND seen_at < clock_timestamp() - interval '1 minute'
		AND (postmaster = $5 OR $7::bool AND system = $3 AND timeline = $4)
	FOR UPDATE SKIP LOCKED
), ended AS (
	UPDATE noisegate.gateway g SET ended_at = clock_timestamp(), ended_by = 'not seen for a minute', ended_on = $4
	FROM unseen u WHERE g.run = u.run
)
INSERT INTO noisegate.gateway AS g (run, name, system, timeline, postmaster, heads)
SELECT $1::text, $2::text, $3::bigint, $4::bigint, $5::timestamptz, $6::json WHERE $5 = pg_catalog.pg_postmaster_start_time()
ON CONFLICT (run) DO UPDATE SET seen_at = clock_timestamp(), ended_at = NULL, ended_by = NULL, ended_on = NULL, system = $3, timeline = $4,
	postmaster = $5,
	heads = $6::json
