-- What the rows of a ledger must be like is a function for each table: PostgreSQL reads and prepares each CHECK of a table anew for each
-- statement that writes to it, which took a quarter of the ledger's time, but knows a function for as long as a connection lasts. Like a
-- CHECK that is written out it cannot be switched off, and a restored database has it. The conditions are those of before.

CREATE FUNCTION noisegate.account_is_sound(dataset text, scope noisegate.scope, name text, origin text, policy_version bigint, form text,
	epsilon_cap bigint, rho_cap bigint, delta_cap bigint, total_delta bigint, query_epsilon_cap bigint, query_rho_cap bigint,
	epsilon_ceiling bigint, rho_ceiling bigint, delta_ceiling bigint, tranche_every bigint, tranche_epsilon bigint, tranche_rho bigint,
	rate_per bigint, rate_epsilon bigint, rate_rho bigint, refills bigint,
	used_epsilon bigint, used_unbounded bigint, used_rho bigint, used_delta bigint, used_tail bigint,
	reserved_epsilon bigint, reserved_unbounded bigint, reserved_rho bigint, reserved_delta bigint, reserved_tail bigint)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN dataset <> '' AND (scope = 'dataset') = (name = '') AND origin IN ('policy', 'steward') AND policy_version >= 0
		AND form IN ('pure', 'zcdp', 'approx')
		AND epsilon_cap >= -1 AND rho_cap >= -1 AND delta_cap >= 0 AND total_delta >= delta_cap AND total_delta <= 999999999999999999
		AND query_epsilon_cap >= 0 AND query_rho_cap >= 0
		AND epsilon_ceiling >= epsilon_cap AND rho_ceiling >= rho_cap AND delta_ceiling >= delta_cap
		AND tranche_every >= 0 AND tranche_epsilon >= 0 AND tranche_rho >= 0
		AND rate_per >= 0 AND rate_epsilon >= 0 AND rate_rho >= 0 AND refills >= 0
		AND used_epsilon >= 0 AND used_unbounded >= 0 AND used_rho >= 0 AND used_delta >= 0 AND used_tail >= 0
		AND reserved_epsilon BETWEEN 0 AND used_epsilon AND reserved_unbounded BETWEEN 0 AND used_unbounded
		AND reserved_rho BETWEEN 0 AND used_rho AND reserved_delta BETWEEN 0 AND used_delta AND reserved_tail BETWEEN 0 AND used_tail
		-- The rule of admission, on the caps until they were lowered last.
		AND used_delta <= delta_ceiling - LEAST(used_tail, CASE WHEN form = 'approx' THEN total_delta / 32 ELSE 0 END)
		AND (used_unbounded = 0 AND used_epsilon <= epsilon_ceiling
				AND used_tail <= CASE WHEN form = 'approx' THEN total_delta / 32 ELSE 0 END
			OR used_rho <= rho_ceiling);
END
$$;

-- What a charge counts as for shared accounts: ε, unbounded, ρ, δ and tail, none of them above its own.
CREATE FUNCTION noisegate.is_less(shared bigint[], epsilon bigint, unbounded boolean, rho bigint, delta bigint, tail bigint)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN cardinality(shared) = 5 AND array_position(shared, NULL) IS NULL AND shared[1] BETWEEN 0 AND epsilon
		AND shared[2] BETWEEN 0 AND unbounded::int AND shared[3] BETWEEN 0 AND rho AND shared[4] BETWEEN 0 AND delta
		AND shared[5] BETWEEN 0 AND tail;
END
$$;

CREATE FUNCTION noisegate.charge_is_sound(charge_id text, account_ids bigint[], state text, epsilon bigint, unbounded boolean, rho bigint,
	delta bigint, tail bigint, shared bigint[], fingerprint bytea, attempt int, closed boolean, answered boolean)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN charge_id <> '' AND cardinality(account_ids) > 0 AND octet_length(fingerprint) = 32 AND attempt >= 1
		AND state IN ('open', 'settled', 'voided', 'expired') AND (state <> 'open') = closed AND (state = 'settled') = answered
		AND epsilon >= 0 AND (epsilon = 0 OR NOT unbounded) AND rho >= 0 AND delta >= 0 AND tail >= 0 AND (tail = 0 OR NOT unbounded)
		AND (state <> 'voided' OR epsilon = 0 AND NOT unbounded AND rho = 0 AND delta = 0 AND tail = 0)
		AND (shared IS NULL OR state = 'settled' AND noisegate.is_less(shared, epsilon, unbounded, rho, delta, tail));
END
$$;

CREATE FUNCTION noisegate.entry_is_sound(kind text, analyst text, of_charge boolean, of_account boolean, has_mechanisms boolean,
	digested boolean, hash bytea, epsilon bigint, unbounded boolean, rho bigint, delta bigint, tail bigint, shared bigint[])
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN analyst <> '' AND hash IS NOT NULL AND octet_length(hash) = 32 AND tail >= 0 AND (tail = 0 OR NOT unbounded)
		AND kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import',
			'policy', 'free', 'keys', 'recharge', 'resume', 'archive')
		AND digested = (kind IN ('reserve', 'settle', 'recharge'))
		AND of_charge = (kind IN ('reserve', 'settle', 'void', 'expire', 'fail', 'recharge'))
		AND of_account = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import', 'policy', 'free', 'keys', 'recharge', 'resume',
			'archive'))
		AND CASE WHEN kind = 'reserve' THEN has_mechanisms ELSE NOT has_mechanisms OR kind IN ('settle', 'recharge') END
		AND (shared IS NULL OR kind = 'settle' AND noisegate.is_less(shared, epsilon, unbounded, rho, delta, tail));
END
$$;

CREATE FUNCTION noisegate.released_is_sound(identity bytea, vals text, series bytea, as_of timestamptz, data_version text)
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN octet_length(identity) = 32 AND octet_length(vals) BETWEEN 1 AND 4194304 AND (series IS NULL OR octet_length(series) = 32)
		AND num_nulls(series, as_of, data_version) IN (0, 3);
END
$$;

DO $$
DECLARE c record;
BEGIN
	FOR c IN SELECT conrelid::regclass AS relation, conname FROM pg_catalog.pg_constraint
		WHERE contype = 'c' AND conrelid IN ('noisegate.account'::regclass, 'noisegate.charge'::regclass, 'noisegate.entry'::regclass,
			'noisegate.released'::regclass)
	LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.relation, c.conname);
	END LOOP;
END
$$;

ALTER TABLE noisegate.account ADD CONSTRAINT within_the_ceiling CHECK (noisegate.account_is_sound(dataset, scope, name, origin,
	policy_version, form, epsilon_cap, rho_cap, delta_cap, total_delta, query_epsilon_cap, query_rho_cap, epsilon_ceiling, rho_ceiling,
	delta_ceiling, tranche_every, tranche_epsilon, tranche_rho, rate_per, rate_epsilon, rate_rho, refills, used_epsilon, used_unbounded,
	used_rho, used_delta, used_tail, reserved_epsilon, reserved_unbounded, reserved_rho, reserved_delta, reserved_tail));
ALTER TABLE noisegate.charge ADD CONSTRAINT charge_is_sound CHECK (noisegate.charge_is_sound(charge_id, account_ids, state, epsilon,
	unbounded, rho, delta, tail, shared, fingerprint, attempt, closed_at IS NOT NULL, answer IS NOT NULL));
-- NOT VALID: entries from before there was a chain have no hash.
ALTER TABLE noisegate.entry ADD CONSTRAINT entry_is_sound CHECK (noisegate.entry_is_sound(kind, analyst, charge_id IS NOT NULL,
	account IS NOT NULL, mechanisms IS NOT NULL, digest IS NOT NULL, hash, epsilon, unbounded, rho, delta, tail, shared)) NOT VALID;
ALTER TABLE noisegate.released ADD CONSTRAINT released_is_sound CHECK (noisegate.released_is_sound(identity, vals, series, as_of,
	data_version));
