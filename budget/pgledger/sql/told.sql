-- Of each gateway: whether it may know entries of a dataset that this server lacks, and was not here since one was missed, or was ended
-- before it came to a server that had taken over, and no loss was accepted since, however often the server changed (times of two
-- servers are compared, whose clocks may differ: within a day it counts as not accepted); and,
-- where it was, the entry that it misses, up to which entry it had followed them, and how many slots of plans were drawn by then. NULL: it
-- misses none, or does not know.
--
-- $1 dataset
SELECT CASE WHEN g.ended_at IS NULL THEN g.postmaster <> pg_catalog.pg_postmaster_start_time()
			OR coalesce(g.seen_at < (SELECT max(found_at) FROM noisegate.lost WHERE dataset = $1 AND accepted_at IS NULL), false)
		ELSE coalesce(g.ended_on <> g.timeline AND NOT EXISTS (SELECT FROM noisegate.lost
			WHERE dataset = $1 AND accepted_at > g.ended_at + interval '1 day'), false) END,
	l.seq, l.hash, CASE WHEN l.seq IS NOT NULL THEN h.followed END, CASE WHEN l.seq IS NOT NULL THEN h.drawn END
FROM noisegate.gateway g
LEFT JOIN LATERAL json_to_recordset(g.heads) AS h (dataset text, seq bigint, hash text, followed bigint, drawn json) ON h.dataset = $1
LEFT JOIN noisegate.lost l ON l.dataset = h.dataset AND l.seq = h.seq AND l.hash = decode(h.hash, 'hex') AND l.accepted_at IS NULL
