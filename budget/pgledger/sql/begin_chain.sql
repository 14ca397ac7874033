-- Makes the row that a dataset's ledger is locked by. It is confirmed on this server unless a gateway did not yet find there
-- what it knows, which may be of this dataset. Its time begins with its first entry.
--
-- $1 dataset
INSERT INTO noisegate.chain (dataset, at, postmaster) SELECT $1, 'epoch', CASE WHEN EXISTS (SELECT FROM noisegate.gateway
	WHERE ended_at IS NULL AND postmaster <> pg_catalog.pg_postmaster_start_time()) THEN '-infinity' ELSE pg_catalog.pg_postmaster_start_time() END
ON CONFLICT DO NOTHING
