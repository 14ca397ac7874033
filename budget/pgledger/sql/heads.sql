-- Where all journals end, whether they were confirmed on this server and lack nothing, and if they go on after entries
-- that are asked for, the hashes of those.
--
-- $1 datasets  $2 numbers of entries
SELECT c.dataset, c.seq, c.head, CASE WHEN c.seq > k.seq THEN (SELECT e.hash FROM noisegate.entry e WHERE e.dataset = c.dataset AND e.seq = k.seq) END,
	c.postmaster = pg_catalog.pg_postmaster_start_time(), c.lost
FROM noisegate.chain c LEFT JOIN unnest($1::text[], $2::bigint[]) AS k (dataset, seq) USING (dataset)
