-- Makes the row that a dataset's ledger is locked by.
--
-- $1 dataset
INSERT INTO noisegate.chain (dataset) VALUES ($1) ON CONFLICT DO NOTHING
