-- What a buyer paid for of a version so far, by outcome. Each is looked up by its key, so that what others bought is
-- not read.
--
-- $1 version  $2 buyer
SELECT a.status, count(*)
FROM noisegate.pate_purchase p CROSS JOIN LATERAL (
	SELECT status FROM noisegate.pate_answer WHERE ensemble_id = p.ensemble_id AND question = p.question AND query_no = p.query_no OFFSET 0
) a
WHERE p.ensemble_id = $1 AND p.buyer = $2
GROUP BY a.status
