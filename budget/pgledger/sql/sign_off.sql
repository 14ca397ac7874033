-- Ends a run of a gateway.
--
-- $1 run
UPDATE noisegate.gateway SET ended_at = clock_timestamp(), ended_by = 'itself' WHERE run = $1 AND ended_at IS NULL
