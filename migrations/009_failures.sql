-- Failures: charges that ended after their work had begun, and steward's words that those of an analyst count no more.

ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_kind,
	DROP CONSTRAINT entry_of_charge,
	DROP CONSTRAINT entry_of_account,
	ADD CONSTRAINT entry_kind CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset')),
	ADD CONSTRAINT entry_of_charge CHECK ((charge_id IS NOT NULL) = (kind IN ('reserve', 'settle', 'void', 'expire', 'fail'))),
	-- Of a reset it says whose failures.
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset')));

CREATE INDEX entry_failed ON noisegate.entry (dataset, analyst, seq) WHERE kind = 'fail';
CREATE INDEX entry_reset ON noisegate.entry (dataset, (account->>'resets_failures_of'), seq) WHERE kind = 'reset';
