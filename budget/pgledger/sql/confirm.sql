-- Takes up a dataset on a server that was started anew, or took over, once every gateway found the newest entries that it
-- knew. With patience at its end, those need not have which had them last on this timeline: it forgot nothing.
--
-- $1 dataset  $2 whether patience is at its end  $3 system identifier  $4 timeline
UPDATE noisegate.chain SET postmaster = pg_catalog.pg_postmaster_start_time()
WHERE dataset = $1 AND postmaster <> pg_catalog.pg_postmaster_start_time() AND NOT EXISTS (
	SELECT FROM noisegate.gateway g
	WHERE g.ended_at IS NULL AND g.postmaster <> pg_catalog.pg_postmaster_start_time() AND NOT ($2::bool AND g.system = $3 AND g.timeline = $4)
)
