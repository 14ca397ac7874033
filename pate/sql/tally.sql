-- What was released of a version so far, by outcome.
--
-- $1 version
SELECT status, count(*) FROM noisegate.pate_answer WHERE ensemble_id = $1 GROUP BY status
