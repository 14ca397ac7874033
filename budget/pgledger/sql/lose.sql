-- Holds a dataset, which is locked, for an entry that a gateway knew and that is gone; unless a steward took that for granted.
--
-- $1 dataset  $2 number  $3 hash  $4 gateway
WITH noted AS (
	INSERT INTO noisegate.lost (dataset, seq, hash, gateway) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
)
UPDATE noisegate.chain SET lost = true
WHERE dataset = $1 AND NOT EXISTS (SELECT FROM noisegate.lost WHERE dataset = $1 AND seq = $2 AND hash = $3 AND accepted_at IS NOT NULL)
