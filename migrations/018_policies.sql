-- What is in force is in the chain: versions of policies, reads of public tables, and whose keys sign.

ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_kind,
	DROP CONSTRAINT entry_of_account,
	ADD CONSTRAINT entry_kind CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import',
		'policy', 'free', 'keys')),
	-- Of a reset it says whose failures, of an import which votes, of a policy which text and facts, of free reads how many, of keys whose.
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import',
		'policy', 'free', 'keys')));

CREATE INDEX entry_in_force ON noisegate.entry (dataset, kind, seq) WHERE kind IN ('policy', 'keys');

-- Versions from now on name their entry, with which they are written. A gateway from before this migration cannot add one.
ALTER TABLE noisegate.policy
	ADD COLUMN entry bigint,
	ADD CONSTRAINT policy_is_in_the_chain CHECK (entry IS NOT NULL) NOT VALID;
