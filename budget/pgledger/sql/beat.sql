-- Writes down that a run of a gateway is there, on which server it found the newest entries that it knows, and these.
-- One that was taken for ended is back.
--
-- $1 run  $2 name  $3 system identifier  $4 timeline  $5 start of the server  $6 heads
INSERT INTO noisegate.gateway AS g (run, name, system, timeline, postmaster, heads) VALUES ($1, $2, $3, $4, $5, $6::json)
ON CONFLICT (run) DO UPDATE SET seen_at = clock_timestamp(), ended_at = NULL, ended_by = NULL, system = $3, timeline = $4, postmaster = $5,
	heads = $6::json
