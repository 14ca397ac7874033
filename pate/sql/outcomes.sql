-- What was released of some queries, in any order. Each is looked up by its key, as in purchases.sql.
--
-- $1 version  $2 places of queries  $3 questions, one for each query or one for all
SELECT found.question, found.query_no, found.status, found.label, found.histogram
FROM unnest($2::integer[], $3::bytea[]) AS o (query_no, question) CROSS JOIN LATERAL (
	SELECT a.question, a.query_no, a.status, a.label, a.histogram FROM noisegate.pate_answer a
	WHERE a.ensemble_id = $1 AND a.question = coalesce(o.question, ($3::bytea[])[1]) AND a.query_no = o.query_no
	OFFSET 0
) found
