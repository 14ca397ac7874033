-- Whether a steward took it for granted that an entry is lost.
--
-- $1 dataset  $2 number  $3 hash
SELECT EXISTS (SELECT FROM noisegate.lost WHERE dataset = $1 AND seq = $2 AND hash = $3 AND accepted_at IS NOT NULL)
