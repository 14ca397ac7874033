-- What was released of a version so far, by outcome: of all, or of what one buyer paid for.
--
-- $1 version  $2 buyer, or NULL for all
SELECT a.status, count(*)
FROM noisegate.pate_answer a
WHERE a.ensemble_id = $1 AND ($2::text IS NULL OR EXISTS (
	SELECT FROM noisegate.pate_purchase p
	WHERE p.ensemble_id = $1 AND p.buyer = $2 AND p.question = a.question AND p.query_no = a.query_no))
GROUP BY a.status
