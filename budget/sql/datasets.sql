-- The datasets that have a ledger.
SELECT dataset FROM noisegate.chain ORDER BY dataset
