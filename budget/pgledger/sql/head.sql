-- Where a dataset's journal ends.
--
-- $1 dataset
SELECT seq, head FROM noisegate.chain WHERE dataset = $1
