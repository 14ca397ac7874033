-- Failover: on which server a dataset's ledger was confirmed, which gateways there are, and what is missing from it.

-- A server that was started anew, or another one that took over, may lack what it, or its predecessor, had confirmed.
-- postmaster says when the server was started on which all gateways found the newest entries that they knew: on another
-- one nothing is written until they do. lost: a gateway did not find an entry (noisegate.lost says which).
ALTER TABLE noisegate.chain
	ADD COLUMN postmaster timestamptz NOT NULL DEFAULT '-infinity',
	ADD COLUMN lost       boolean     NOT NULL DEFAULT false;
GRANT UPDATE (postmaster, lost) ON noisegate.chain TO noisegate;

-- Gateways, a row for each run of one. The server is where it last found the newest entries that it knew.
CREATE TABLE noisegate.gateway (
	run        text        PRIMARY KEY CHECK (run <> ''),
	name       text        NOT NULL CHECK (name <> ''),
	started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
	ended_at   timestamptz,           -- it signed off, or was forgotten
	ended_by   text,
	system     bigint      NOT NULL,  -- the server's system identifier
	timeline   bigint      NOT NULL,
	postmaster timestamptz NOT NULL,  -- when the server was started
	heads      json        NOT NULL,  -- the newest entries that it knows
	CHECK ((ended_at IS NULL) = (ended_by IS NULL))
);

-- Entries that a gateway knew to be committed and that are not there any more, and who took that for granted.
CREATE TABLE noisegate.lost (
	dataset     text        NOT NULL,
	seq         bigint      NOT NULL,
	hash        bytea       NOT NULL CHECK (octet_length(hash) = 32),
	gateway     text        NOT NULL,
	found_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
	accepted_at timestamptz,
	accepted_by text,
	PRIMARY KEY (dataset, seq, hash),
	CHECK ((accepted_at IS NULL) = (accepted_by IS NULL))
);

GRANT SELECT, INSERT ON noisegate.gateway, noisegate.lost TO noisegate;
GRANT UPDATE (seen_at, ended_at, ended_by, system, timeline, postmaster, heads) ON noisegate.gateway TO noisegate;
GRANT UPDATE (accepted_at, accepted_by) ON noisegate.lost TO noisegate;

CREATE TRIGGER kept BEFORE DELETE ON noisegate.lost FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.lost FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

-- recharge: a charge that was lost is booked again, from its receipt, which account has. resume: a dataset goes on without
-- entries that are lost; account says which.
ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_kind,
	DROP CONSTRAINT entry_of_charge,
	DROP CONSTRAINT entry_of_account,
	DROP CONSTRAINT entry_digest,
	ADD CONSTRAINT entry_kind CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import',
		'policy', 'free', 'keys', 'recharge', 'resume')),
	ADD CONSTRAINT entry_of_charge CHECK ((charge_id IS NOT NULL) = (kind IN ('reserve', 'settle', 'void', 'expire', 'fail', 'recharge'))),
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import',
		'policy', 'free', 'keys', 'recharge', 'resume'))),
	-- Entries from before the chain have none.
	ADD CONSTRAINT entry_digest CHECK ((digest IS NOT NULL) = (kind IN ('reserve', 'settle', 'recharge'))) NOT VALID;
