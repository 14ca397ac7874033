-- Counts of queries, in the order in which they are asked.
--
-- $1 version  $2 places of queries
SELECT v.counts
FROM unnest($2::integer[]) WITH ORDINALITY AS asked (query_no, place)
JOIN noisegate.pate_votes v ON v.ensemble_id = $1 AND v.query_no = asked.query_no
ORDER BY asked.place
