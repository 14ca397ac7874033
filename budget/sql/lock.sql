-- Locks a dataset's ledger until the transaction ends, and says where its journal ends, what time it had, and, if it goes on after an entry that
-- is asked for, the hash of that. No row: nothing is there yet.
--
-- $1 dataset  $2 number of the entry, or 0
SELECT seq, head, at, CASE WHEN seq > $2 THEN (SELECT e.hash FROM noisegate.entry e WHERE e.dataset = $1 AND e.seq = $2) END
FROM noisegate.chain WHERE dataset = $1 FOR NO KEY UPDATE
