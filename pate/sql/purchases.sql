-- Which outcomes a buyer paid for, of some queries, in any order. Each is looked up by its key: what that takes is a
-- function of what is asked, whatever others bought and whatever PostgreSQL knows of the table, which has no other
-- index.
--
-- $1 version  $2 places of queries  $3 questions, one for each query or one for all  $4 buyer
SELECT found.question, found.query_no
FROM unnest($2::integer[], $3::bytea[]) AS o (query_no, question) CROSS JOIN LATERAL (
	SELECT p.question, p.query_no FROM noisegate.pate_purchase p
	WHERE p.ensemble_id = $1 AND p.buyer = $4 AND p.question = coalesce(o.question, ($3::bytea[])[1]) AND p.query_no = o.query_no
	OFFSET 0
) found
