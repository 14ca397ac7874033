-- Locks a dataset's ledger until the transaction ends and writes where its journal ends then, and its time. If it is not where the writer believes, it
-- fails with a division by zero, and with it the transaction.
--
-- $1 dataset  $2 newest entry  $3 its hash  $4 time  $5, $6, $7 the same so far
WITH advanced AS (
	UPDATE noisegate.chain SET seq = $2, head = $3, at = $4 WHERE dataset = $1 AND seq = $5 AND head = $6 AND at = $7 RETURNING seq
)
SELECT 1 / count(*) FROM advanced
