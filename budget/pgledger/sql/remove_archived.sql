-- Removes entries that files have. Those stay that something reads, and those that a gateway knew last that ended: it, or its
-- anchor, looks for them when it is started again. The anchor of one that was killed may be newer than what it said last, by
-- the second after which both are written again, and by what a busy machine adds.
--
-- $1 dataset  $2 the last entry in the newest file
WITH killed AS MATERIALIZED (
	SELECT seen_at FROM noisegate.gateway g
	WHERE ended_by <> 'itself' AND NOT EXISTS (SELECT FROM noisegate.gateway WHERE name = g.name AND started_at > g.started_at)
)
DELETE FROM noisegate.entry e
WHERE dataset = $1 AND seq < $2 AND NOT noisegate.stays(kind) AND NOT EXISTS (
	SELECT FROM noisegate.gateway g CROSS JOIN json_to_recordset(g.heads) AS h (dataset text, seq bigint)
	WHERE h.dataset = e.dataset AND h.seq = e.seq
) AND NOT EXISTS (SELECT FROM killed WHERE e.at BETWEEN seen_at - interval '10 seconds' AND seen_at + interval '10 seconds')
