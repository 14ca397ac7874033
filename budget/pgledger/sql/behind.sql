-- A gateway that did not end and had not found a dataset's entry, or one after it, when it was there last.
--
-- $1 dataset  $2 number
SELECT g.name FROM noisegate.gateway g CROSS JOIN json_to_recordset(g.heads) AS h (dataset text, seq bigint)
WHERE g.ended_at IS NULL AND h.dataset = $1 AND h.seq < $2
ORDER BY g.name LIMIT 1
