-- The places of queries by their names, in any order. No join: as a condition on the keys it is a hash look-up a row at worst, and never
-- reads the version once for each key, which it might where a table was just filled and has no statistics.
--
-- $1 version  $2 names of queries
SELECT key, query_no FROM noisegate.pate_votes WHERE ensemble_id = $1 AND key = ANY ($2)
