-- The journal becomes a chain, and budgets are released over time.

-- One row for each dataset: where its journal ends. Whoever changes anything of a dataset's ledger locks this row first, so that
-- everything about a dataset happens in one order, through however many gateways.
CREATE TABLE noisegate.chain (
	dataset text        PRIMARY KEY CHECK (dataset <> ''),
	seq     bigint      NOT NULL DEFAULT 0, -- of the newest entry; 0: there is none
	head    bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(head) = 32), -- its hash
	at      timestamptz NOT NULL DEFAULT clock_timestamp() -- the dataset's time, a high-water mark of the server's clock
) WITH (fillfactor = 50);

INSERT INTO noisegate.chain (dataset) SELECT DISTINCT dataset FROM noisegate.entry;

CREATE TRIGGER forward BEFORE UPDATE ON noisegate.chain FOR EACH ROW
	WHEN (NEW.seq < OLD.seq OR NEW.at < OLD.at OR NEW.dataset <> OLD.dataset)
	EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON noisegate.chain FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.chain FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.chain TO noisegate;
GRANT UPDATE (seq, head, at) ON noisegate.chain TO noisegate;

-- hash: SHA-256 over the hash of the dataset's entry before and every other column of this one (budget.Entry.HashAfter).
-- digest: of reservations, SHA-256 of fingerprint and request; of settlements, SHA-256 of the answer.
ALTER TABLE noisegate.entry
	ADD COLUMN digest bytea,
	ADD COLUMN hash   bytea,
	DROP CONSTRAINT entry_kind_check,
	DROP CONSTRAINT entry_check,
	DROP CONSTRAINT entry_check1,
	ADD CONSTRAINT entry_kind CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw')),
	ADD CONSTRAINT entry_of_charge CHECK ((charge_id IS NOT NULL) = (kind IN ('reserve', 'settle', 'void', 'expire'))),
	ADD CONSTRAINT entry_of_account CHECK ((account IS NOT NULL) = (kind IN ('limit', 'refill', 'freeze', 'thaw'))),
	-- Entries from before the chain have none of these.
	ADD CONSTRAINT entry_chained CHECK (octet_length(hash) = 32 AND hash IS NOT NULL) NOT VALID,
	ADD CONSTRAINT entry_digest CHECK ((digest IS NOT NULL) = (kind IN ('reserve', 'settle'))) NOT VALID;

-- The gateway takes an entry's number before it writes it, because the hash covers the number.
GRANT USAGE ON SEQUENCE noisegate.entry_seq_seq TO noisegate;

ALTER TABLE noisegate.account
	ADD COLUMN opened_at       timestamptz NOT NULL DEFAULT clock_timestamp(), -- tranches count from here
	ADD COLUMN frozen          boolean     NOT NULL DEFAULT false,
	-- Every so many microseconds this much more of the cap may be spent; 0: all of it at once.
	ADD COLUMN tranche_every   bigint      NOT NULL DEFAULT 0 CHECK (tranche_every >= 0),
	ADD COLUMN tranche_epsilon bigint      NOT NULL DEFAULT 0 CHECK (tranche_epsilon >= 0),
	ADD COLUMN tranche_rho     bigint      NOT NULL DEFAULT 0 CHECK (tranche_rho >= 0),
	-- At most this much in so many microseconds; 0: as fast as they can. Busy until: when all that was charged has worn off.
	ADD COLUMN rate_per        bigint      NOT NULL DEFAULT 0 CHECK (rate_per >= 0),
	ADD COLUMN rate_epsilon    bigint      NOT NULL DEFAULT 0 CHECK (rate_epsilon >= 0),
	ADD COLUMN rate_rho        bigint      NOT NULL DEFAULT 0 CHECK (rate_rho >= 0),
	ADD COLUMN busy_until      timestamptz NOT NULL DEFAULT 'epoch';

GRANT UPDATE (frozen, tranche_every, tranche_epsilon, tranche_rho, rate_per, rate_epsilon, rate_rho, busy_until)
	ON noisegate.account TO noisegate;

-- What open charges count as, as a part of what is used.
ALTER TABLE noisegate.account
	ADD COLUMN reserved_epsilon   bigint NOT NULL DEFAULT 0,
	ADD COLUMN reserved_unbounded bigint NOT NULL DEFAULT 0,
	ADD COLUMN reserved_rho       bigint NOT NULL DEFAULT 0,
	ADD COLUMN reserved_delta     bigint NOT NULL DEFAULT 0;

UPDATE noisegate.account a
SET reserved_epsilon = o.epsilon, reserved_unbounded = o.unbounded, reserved_rho = o.rho, reserved_delta = o.delta
FROM (
	SELECT id, sum(epsilon) AS epsilon, count(*) FILTER (WHERE unbounded) AS unbounded, sum(rho) AS rho, sum(delta) AS delta
	FROM noisegate.charge, unnest(account_ids) AS id
	WHERE state = 'open'
	GROUP BY id
) o
WHERE a.account_id = o.id;

ALTER TABLE noisegate.account ADD CONSTRAINT reserved_is_used CHECK (reserved_epsilon BETWEEN 0 AND used_epsilon
	AND reserved_unbounded BETWEEN 0 AND used_unbounded AND reserved_rho BETWEEN 0 AND used_rho AND reserved_delta BETWEEN 0 AND used_delta);

GRANT UPDATE (reserved_epsilon, reserved_unbounded, reserved_rho, reserved_delta) ON noisegate.account TO noisegate;

-- Which time the question is charged: one more each time that a charge ended without an answer. No index of the table depends on
-- what changes when a charge ends, and each page has room for the answers of its charges, so that ending one touches one page.
ALTER TABLE noisegate.charge DISABLE TRIGGER transition;
ALTER TABLE noisegate.charge ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt >= 1);
UPDATE noisegate.charge c SET attempt = n.attempt
FROM (
	SELECT charge_id, row_number() OVER (PARTITION BY dataset, analyst, fingerprint ORDER BY state IN ('open', 'settled'), opened_at, charge_id) AS attempt
	FROM noisegate.charge
) n
WHERE c.charge_id = n.charge_id AND n.attempt > 1;
ALTER TABLE noisegate.charge ENABLE TRIGGER transition;

DROP INDEX noisegate.charge_question, noisegate.charge_open;
CREATE UNIQUE INDEX charge_question ON noisegate.charge (fingerprint, analyst, dataset, attempt);
CREATE INDEX charge_opened ON noisegate.charge (opened_at);
ALTER TABLE noisegate.charge SET (fillfactor = 30);
