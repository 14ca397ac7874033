-- Where a dataset's journal ends, and, if it goes on after an entry that is asked for, the hash of that.
--
-- $1 dataset  $2 number of the entry, or 0
SELECT seq, head, CASE WHEN seq > $2 THEN (SELECT e.hash FROM noisegate.entry e WHERE e.dataset = $1 AND e.seq = $2) END
FROM noisegate.chain WHERE dataset = $1
