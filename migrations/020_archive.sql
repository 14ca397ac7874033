-- Old entries of the journal move into signed files (docs/decisions/0044). What remains goes on from the last entry of the newest file.

CREATE TABLE noisegate.archive (
	dataset text   NOT NULL CHECK (dataset <> ''),
	seq     bigint NOT NULL CHECK (seq > 0), -- of the last entry in the file, which stays in the journal as well
	record  json   NOT NULL,                 -- what the chain says of the file, byte for byte as in its entry
	state   json   NOT NULL,                 -- accounts and plans after that entry (journal.Replayed); no charge was open
	PRIMARY KEY (dataset, seq)
);
CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON noisegate.archive FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.archive FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();
GRANT SELECT ON noisegate.archive TO noisegate; -- the owner archives

-- Which entries stay in the journal: of them replays, histories and failures are made, and what is in force is found by them.
CREATE FUNCTION noisegate.stays(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
	$$ SELECT kind IN ('settle', 'fail', 'reset', 'policy', 'keys') $$;
GRANT EXECUTE ON FUNCTION noisegate.stays(text) TO noisegate;

-- The others go once a file has them.
CREATE FUNCTION noisegate.refuse_unless_archived() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
	IF TG_OP = 'DELETE' AND NOT noisegate.stays(OLD.kind)
		AND EXISTS (SELECT FROM noisegate.archive a WHERE a.dataset = OLD.dataset AND a.seq > OLD.seq) THEN
		RETURN OLD;
	END IF;
	RAISE EXCEPTION 'noisegate.% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;
DROP TRIGGER append_only ON noisegate.entry;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.entry
	FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_unless_archived();

ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_kind,
	DROP CONSTRAINT entry_of_account,
	ADD CONSTRAINT entry_kind
		CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import',
		'policy', 'free', 'keys', 'recharge', 'resume', 'archive')),
	-- Of an archive it says which file; of the others as before.
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import',
		'policy', 'free', 'keys', 'recharge', 'resume', 'archive')));
