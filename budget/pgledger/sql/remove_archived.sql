-- Removes entries that files have. Those stay that something reads, and those that a gateway knew last that ended: it, or its
-- anchor, looks for them when it is started again.
--
-- $1 dataset  $2 the last entry in the newest file
DELETE FROM noisegate.entry e
WHERE dataset = $1 AND seq < $2 AND NOT noisegate.stays(kind) AND NOT EXISTS (
	SELECT FROM noisegate.gateway g CROSS JOIN json_to_recordset(g.heads) AS h (dataset text, seq bigint)
	WHERE h.dataset = e.dataset AND h.seq = e.seq)
