-- Writes where a dataset's journal ends now.
--
-- $1 dataset  $2 newest entry  $3 its hash  $4 time
UPDATE noisegate.chain SET seq = $2, head = $3, at = $4 WHERE dataset = $1
