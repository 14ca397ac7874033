-- Locks a dataset's ledger until the transaction ends, and says where its journal ends, what time it had, if it goes on
-- after an entry that is asked for, the hash of that, which migration the schema had last, when the server was started,
-- whether the ledger was confirmed on it, whether an entry is lost, and the newest version of the policy (0: none) with
-- its digest and who raised caps last. No row: nothing is there yet.
--
-- The migration is read first, which locks its table until the transaction ends: a migration locks it as well, and
-- before any other, so that the schema stays what it is until this transaction ends and neither waits for the other in
-- a circle.
--
-- $1 dataset  $2 number of the entry, or 0
WITH version AS MATERIALIZED (
	SELECT max(number) AS number FROM noisegate.schema_migration
), locked AS MATERIALIZED (
	SELECT seq, head, at, CASE WHEN seq > $2 THEN (SELECT e.hash FROM noisegate.entry e WHERE e.dataset = $1 AND e.seq = $2) END AS kept,
		postmaster, lost
	FROM noisegate.chain WHERE dataset = $1 FOR NO KEY UPDATE
)
SELECT locked.seq, locked.head, locked.at, locked.kept, version.number, pg_catalog.pg_postmaster_start_time(),
	locked.postmaster = pg_catalog.pg_postmaster_start_time(), locked.lost,
	coalesce(newest.version, 0), newest.digest, coalesce(newest.raised_by, '')
FROM locked CROSS JOIN version
LEFT JOIN LATERAL (SELECT p.version, p.digest, p.raised_by FROM noisegate.policy p WHERE p.dataset = $1 ORDER BY p.version DESC LIMIT 1) AS newest ON true
