-- The tables that entries of policies say have, or had, a privacy unit.
--
-- $1 dataset
SELECT DISTINCT jsonb_object_keys((account->'protected')::jsonb) FROM noisegate.entry
WHERE dataset = $1 AND kind = 'policy' AND account->'protected' IS NOT NULL
