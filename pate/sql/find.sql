-- The place of each query, and what was released of it in answer to the same question, in the order in which they are asked. Counts are
-- not looked at.
--
-- $1 version  $2 names of queries  $3 questions, one for each query or one for all
SELECT v.query_no, a.status, a.label, a.histogram
FROM unnest($2::text[]) WITH ORDINALITY AS asked (key, place)
LEFT JOIN noisegate.pate_votes v ON v.ensemble_id = $1 AND v.key = asked.key
LEFT JOIN noisegate.pate_answer a ON a.ensemble_id = $1 AND a.query_no = v.query_no
	AND a.question = ($3::bytea[])[CASE WHEN cardinality($3::bytea[]) = 1 THEN 1 ELSE asked.place END]
ORDER BY asked.place
