-- The ledger of privacy budgets. ε and ρ are in units of 10⁻¹², δ in units of 10⁻¹⁸: exact integers, never floats.
--
-- What must hold is written down here, so that a defect of the gateway fails instead of overspending: sums against ceilings and
-- the states of a charge as CHECK constraints, their transitions and the journal's immutability as triggers, and
-- the gateway's role may change only the columns that move.

-- The order of the labels is the order in which a charge locks its accounts.
CREATE TYPE noisegate.scope AS ENUM ('dataset', 'group', 'analyst');

CREATE TABLE noisegate.account (
	account_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	dataset            text            NOT NULL CHECK (dataset <> ''),
	scope              noisegate.scope NOT NULL,
	name               text COLLATE "C" NOT NULL CHECK ((scope = 'dataset') = (name = '')),
	origin             text            NOT NULL CHECK (origin IN ('policy', 'steward')),
	policy_version     bigint          NOT NULL CHECK (policy_version >= 0), -- that set the limit: an older one sets no other

	-- The limit. A cap of -1 is a clause that admits nothing; a cap of 0 on one query is none.
	form               text            NOT NULL CHECK (form IN ('pure', 'zcdp', 'approx')),
	epsilon_cap        bigint          NOT NULL CHECK (epsilon_cap >= -1),
	rho_cap            bigint          NOT NULL CHECK (rho_cap >= -1),
	delta_cap          bigint          NOT NULL CHECK (delta_cap >= 0),
	total_delta        bigint          NOT NULL CHECK (total_delta BETWEEN delta_cap AND 999999999999999999),
	query_epsilon_cap  bigint          NOT NULL CHECK (query_epsilon_cap >= 0),
	query_rho_cap      bigint          NOT NULL CHECK (query_rho_cap >= 0),
	replay_only        boolean         NOT NULL,

	-- The larger of the cap and of what was used when the cap was set: a cap may be lowered below what is spent, and then
	-- blocks, but nothing that is charged afterwards can pass this.
	epsilon_ceiling    bigint          NOT NULL CHECK (epsilon_ceiling >= epsilon_cap),
	rho_ceiling        bigint          NOT NULL CHECK (rho_ceiling >= rho_cap),
	delta_ceiling      bigint          NOT NULL CHECK (delta_ceiling >= delta_cap),

	-- What open, settled and expired charges count as together. A charge that settles for all that it reserved moves nothing here,
	-- so that one busy account is locked once a charge. Unbounded: how many have no finite ε; theirs counts as 0.
	used_epsilon       bigint          NOT NULL DEFAULT 0 CHECK (used_epsilon >= 0),
	used_rho           bigint          NOT NULL DEFAULT 0 CHECK (used_rho >= 0),
	used_delta         bigint          NOT NULL DEFAULT 0 CHECK (used_delta >= 0),
	used_unbounded     bigint          NOT NULL DEFAULT 0 CHECK (used_unbounded >= 0),

	UNIQUE (dataset, scope, name),
	-- The rule of budget.Limit; a sum beyond bigint is an error and fails the charge as well.
	CONSTRAINT within_the_ceiling CHECK (
		used_delta <= delta_ceiling AND (used_unbounded = 0 AND used_epsilon <= epsilon_ceiling OR used_rho <= rho_ceiling)
	)
) WITH (fillfactor = 50); -- room for each row's next version on its own page

CREATE TABLE noisegate.charge (
	charge_id   text COLLATE "C" PRIMARY KEY CHECK (charge_id <> ''),
	dataset     text        NOT NULL,
	analyst     text        NOT NULL,
	account_ids bigint[]    NOT NULL CHECK (cardinality(account_ids) > 0),
	state       text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'voided', 'expired')),
	-- What the charge counts as: what was reserved while it is open, then what was released.
	epsilon     bigint      NOT NULL CHECK (epsilon >= 0 AND (epsilon = 0 OR NOT unbounded)),
	unbounded   boolean     NOT NULL,
	rho         bigint      NOT NULL CHECK (rho >= 0),
	delta       bigint      NOT NULL CHECK (delta >= 0),
	fingerprint bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
	request     json        NOT NULL,
	answer      bytea, -- of settled charges: the noisy answer, byte for byte
	opened_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
	closed_at   timestamptz,
	CHECK ((state = 'open') = (closed_at IS NULL)),
	CHECK ((state = 'settled') = (answer IS NOT NULL)),
	CHECK (state <> 'voided' OR (epsilon = 0 AND NOT unbounded AND rho = 0 AND delta = 0))
);

-- One question of one analyst is being answered once, or has one answer.
CREATE UNIQUE INDEX charge_question ON noisegate.charge (dataset, analyst, fingerprint) WHERE state IN ('open', 'settled');
CREATE INDEX charge_open ON noisegate.charge (opened_at) WHERE state = 'open';

-- A charge ends once, and never counts for more than was reserved.
CREATE FUNCTION noisegate.refuse_transition() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
	RAISE EXCEPTION 'a charge that is % cannot change like this', OLD.state USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER transition BEFORE UPDATE ON noisegate.charge FOR EACH ROW
	WHEN (OLD.state <> 'open' OR NEW.state = 'open' OR NEW.epsilon > OLD.epsilon OR NEW.rho > OLD.rho OR NEW.delta > OLD.delta
		OR NEW.unbounded AND NOT OLD.unbounded)
	EXECUTE FUNCTION noisegate.refuse_transition();
CREATE TRIGGER kept BEFORE DELETE ON noisegate.charge FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.charge FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

-- What each Idempotency-Key of an analyst stands for. Replays bind their keys here too.
CREATE TABLE noisegate.request_key (
	analyst   text  NOT NULL,
	key       text  NOT NULL CHECK (key <> ''),
	digest    bytea NOT NULL CHECK (octet_length(digest) = 32),
	charge_id text  COLLATE "C" NOT NULL REFERENCES noisegate.charge,
	PRIMARY KEY (analyst, key)
);

-- The journal. Loss is what the charge counts as from this entry on, so that an account's balance is the sum, over its
-- charges, of each one's newest entry.
CREATE TABLE noisegate.entry (
	seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at          timestamptz NOT NULL DEFAULT clock_timestamp(),
	kind        text        NOT NULL CHECK (kind IN ('reserve', 'settle', 'void', 'expire', 'limit')),
	dataset     text        NOT NULL,
	analyst     text        NOT NULL CHECK (analyst <> ''), -- who spent; for limits, who set it
	account_ids bigint[]    NOT NULL,
	charge_id   text COLLATE "C",
	epsilon     bigint      NOT NULL DEFAULT 0,
	unbounded   boolean     NOT NULL DEFAULT false,
	rho         bigint      NOT NULL DEFAULT 0,
	delta       bigint      NOT NULL DEFAULT 0,
	mechanisms  json, -- of reservations: the exact parameters of every release
	account     json, -- of limits: the account and the limit that it has from here on
	CHECK ((kind = 'limit') = (charge_id IS NULL)),
	CHECK ((kind = 'limit') = (account IS NOT NULL)),
	CHECK ((kind = 'reserve') = (mechanisms IS NOT NULL))
);

CREATE INDEX entry_settled ON noisegate.entry (analyst, seq) WHERE kind = 'settle';

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.entry
	FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.entry
	FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.account, noisegate.charge, noisegate.request_key, noisegate.entry TO noisegate;
GRANT UPDATE (
	origin, policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta, query_epsilon_cap, query_rho_cap, replay_only,
	epsilon_ceiling, rho_ceiling, delta_ceiling,
	used_epsilon, used_rho, used_delta, used_unbounded
) ON noisegate.account TO noisegate;
GRANT UPDATE (state, epsilon, unbounded, rho, delta, answer, closed_at) ON noisegate.charge TO noisegate;
GRANT UPDATE (digest, charge_id) ON noisegate.request_key TO noisegate;
