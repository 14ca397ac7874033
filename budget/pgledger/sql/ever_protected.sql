-- The tables that entries of policies say have, or had, a privacy unit: their names, and the OIDs that they had.
--
-- $1 dataset
SELECT t.key, array_agg(DISTINCT t.value::oid ORDER BY t.value::oid)
FROM noisegate.entry e CROSS JOIN LATERAL jsonb_each_text((e.account->'protected')::jsonb) t
WHERE e.dataset = $1 AND e.kind = 'policy' AND e.account->'protected' IS NOT NULL
GROUP BY t.key
