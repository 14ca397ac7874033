-- Locks a dataset's ledger until the transaction ends, writes where its journal ends then, and its time, and gives numbers for later entries,
-- the server's clock and when it was started. If the journal does not end where the writer believes, or the schema had
-- another migration last (see lock.sql), or the ledger was not confirmed on this server, or an entry is lost, it fails
-- with a division by zero, and with it the transaction.
--
-- $1 dataset  $2 newest entry  $3 its hash  $4 time  $5, $6, $7 the same so far  $8 how many numbers  $9 migration
-- $10 whether it may be a ledger that is held
WITH version AS MATERIALIZED (
	SELECT max(number) AS number FROM noisegate.schema_migration
), advanced AS (
	UPDATE noisegate.chain SET seq = $2, head = $3, at = $4
	WHERE dataset = $1 AND seq = $5 AND head = $6 AND at = $7 AND (SELECT number FROM version) = $9::int
		AND ($10::bool OR postmaster = pg_catalog.pg_postmaster_start_time() AND NOT lost) RETURNING seq
)
SELECT 1 / count(*), ARRAY(SELECT nextval('noisegate.entry_seq_seq') FROM generate_series(1, $8::int)), clock_timestamp(),
	pg_catalog.pg_postmaster_start_time()
FROM advanced
