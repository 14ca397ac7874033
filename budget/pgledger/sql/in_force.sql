-- Whether there is an entry of a policy, and the newest of keys.
--
-- $1 dataset
SELECT EXISTS (SELECT FROM noisegate.entry WHERE dataset = $1 AND kind = 'policy'),
	(SELECT account::text FROM noisegate.entry WHERE dataset = $1 AND kind = 'keys' ORDER BY seq DESC LIMIT 1)
