-- Imports of votes are entries: who imports learns something of what was read, also when it is refused.

ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_kind,
	DROP CONSTRAINT entry_of_account,
	ADD CONSTRAINT entry_kind CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import')),
	-- Of a reset it says whose failures, of an import which votes.
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import')));
