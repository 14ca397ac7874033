-- The datasets that have a ledger, or what is left of one.
--
-- $1 whether entries are looked at as well, all of them
SELECT dataset FROM noisegate.chain
UNION SELECT dataset FROM noisegate.account
UNION SELECT dataset FROM noisegate.entry WHERE $1::bool
ORDER BY dataset
