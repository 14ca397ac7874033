-- The queries of which something was released in answer to a question, in their order, and what became of each.
--
-- $1 version  $2 question
SELECT query_no, status FROM noisegate.pate_answer WHERE ensemble_id = $1 AND question = $2 ORDER BY query_no
