-- Takes it for granted that all entries of a dataset are lost that are known to be, and lets it go on, on this server.
--
-- $1 dataset  $2 who says so
WITH noted AS (
	UPDATE noisegate.lost SET accepted_at = clock_timestamp(), accepted_by = $2 WHERE dataset = $1 AND accepted_at IS NULL
)
UPDATE noisegate.chain SET lost = false, postmaster = pg_catalog.pg_postmaster_start_time() WHERE dataset = $1
