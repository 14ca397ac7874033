-- Whether there is an entry of a policy, the newest of keys, what takes two stewards by the newest of a policy, its version (0: none), and
-- the hash of the first entry of either.
--
-- $1 dataset
SELECT EXISTS (SELECT FROM noisegate.entry WHERE dataset = $1 AND kind = 'policy'),
	(SELECT account::text FROM noisegate.entry WHERE dataset = $1 AND kind = 'keys' ORDER BY seq DESC LIMIT 1),
	(SELECT (account->'two_for')::text FROM noisegate.entry WHERE dataset = $1 AND kind = 'policy' ORDER BY seq DESC LIMIT 1),
	coalesce((SELECT (account->>'applies_policy_version')::bigint FROM noisegate.entry WHERE dataset = $1 AND kind = 'policy'
		ORDER BY seq DESC LIMIT 1), 0),
	(SELECT hash FROM noisegate.entry WHERE dataset = $1 AND kind IN ('policy', 'keys') AND hash IS NOT NULL ORDER BY seq LIMIT 1)
