-- Entries of a dataset that are lost, and nobody took that for granted yet.
--
-- $1 dataset
SELECT seq, hash FROM noisegate.lost WHERE dataset = $1 AND accepted_at IS NULL ORDER BY seq, hash
