-- Ends earlier runs of a gateway whose server was on the timeline that this one is on: it forgot nothing.
--
-- $1 name  $2 run that goes on  $3 system identifier  $4 timeline
UPDATE noisegate.gateway SET ended_at = clock_timestamp(), ended_by = 'a later run', ended_on = $4
WHERE name = $1 AND run <> $2 AND ended_at IS NULL AND system = $3 AND timeline = $4
