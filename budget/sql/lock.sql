-- Locks a dataset's ledger until the transaction ends, and says where its journal ends and what time it had. No row: nothing is there yet.
--
-- $1 dataset
SELECT seq, head, at FROM noisegate.chain WHERE dataset = $1 FOR NO KEY UPDATE
