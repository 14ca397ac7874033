-- What was released of some queries in answer to some questions, in any order; no join, as in places.sql.
--
-- $1 version  $2 places of queries  $3 questions
SELECT question, query_no, status, label, histogram
FROM noisegate.pate_answer
WHERE ensemble_id = $1 AND question = ANY ($3::bytea[]) AND query_no = ANY ($2)
