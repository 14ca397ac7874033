-- Ends all runs of a gateway that will not come back.
--
-- $1 name  $2 who says so
UPDATE noisegate.gateway SET ended_at = clock_timestamp(), ended_by = $2 WHERE name = $1 AND ended_at IS NULL
