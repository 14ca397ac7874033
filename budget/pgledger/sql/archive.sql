-- The newest archive of a dataset.
--
-- $1 dataset
SELECT seq, record, state FROM noisegate.archive WHERE dataset = $1 ORDER BY seq DESC LIMIT 1
