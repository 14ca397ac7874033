-- Which outcomes a buyer paid for, of some queries in answer to some questions, in any order; no join, as in places.sql.
--
-- $1 version  $2 places of queries  $3 questions  $4 buyer
SELECT question, query_no
FROM noisegate.pate_purchase
WHERE ensemble_id = $1 AND buyer = $4 AND question = ANY ($3::bytea[]) AND query_no = ANY ($2)
