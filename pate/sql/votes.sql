-- Counts of queries, in any order; no join, as in places.sql.
--
-- $1 version  $2 places of queries
SELECT query_no, counts FROM noisegate.pate_votes WHERE ensemble_id = $1 AND query_no = ANY ($2)
