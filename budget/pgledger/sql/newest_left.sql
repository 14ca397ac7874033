-- When the newest entry of a dataset was written, but for recharges and what they opened.
--
-- $1 dataset
SELECT (SELECT at FROM noisegate.entry
	WHERE dataset = $1 AND at NOT IN (SELECT at FROM noisegate.entry WHERE dataset = $1 AND kind = 'recharge') ORDER BY seq DESC LIMIT 1)
