-- The hash of one entry of a dataset.
--
-- $1 dataset  $2 number
SELECT hash FROM noisegate.entry WHERE dataset = $1 AND seq = $2
