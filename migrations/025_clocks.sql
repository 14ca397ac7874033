-- A dataset's time is set back when a clock was wrong. The entry says to when; earlier entries count as no later than that.

-- Of a clock the account says why, and who signed; the rest is as before.
CREATE OR REPLACE FUNCTION noisegate.entry_is_sound(kind text, analyst text, of_charge boolean, of_account boolean, has_mechanisms boolean,
	digested boolean, hash bytea, epsilon bigint, unbounded boolean, rho bigint, delta bigint, tail bigint, shared bigint[])
RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	RETURN analyst <> '' AND hash IS NOT NULL AND octet_length(hash) = 32 AND tail >= 0 AND (tail = 0 OR NOT unbounded)
		AND kind IN ('reserve', 'settle', 'void', 'expire', 'limit', 'refill', 'freeze', 'thaw', 'fail', 'reset', 'import',
			'policy', 'free', 'keys', 'recharge', 'resume', 'archive', 'clock')
		AND digested = (kind IN ('reserve', 'settle', 'recharge'))
		AND of_charge = (kind IN ('reserve', 'settle', 'void', 'expire', 'fail', 'recharge'))
		AND of_account = (kind IN ('limit', 'refill', 'freeze', 'thaw', 'reset', 'import', 'policy', 'free', 'keys', 'recharge', 'resume',
			'archive', 'clock'))
		AND CASE WHEN kind = 'reserve' THEN has_mechanisms ELSE NOT has_mechanisms OR kind IN ('settle', 'recharge') END
		AND (shared IS NULL OR kind = 'settle' AND noisegate.is_less(shared, epsilon, unbounded, rho, delta, tail));
END
$$;

CREATE INDEX entry_clock ON noisegate.entry (dataset, seq) WHERE kind = 'clock';

-- They stay in the journal: failures from before them do.
CREATE OR REPLACE FUNCTION noisegate.stays(kind text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
	$$ SELECT kind IN ('settle', 'fail', 'reset', 'policy', 'keys', 'clock') $$;

-- The time goes back only with such an entry, which the transaction writes after it has locked the chain.
DROP TRIGGER forward ON noisegate.chain;
CREATE TRIGGER forward BEFORE UPDATE ON noisegate.chain FOR EACH ROW
	WHEN (NEW.seq < OLD.seq OR NEW.dataset <> OLD.dataset)
	EXECUTE FUNCTION noisegate.refuse_change();
CREATE FUNCTION noisegate.refuse_unless_set_back() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM noisegate.entry e
		WHERE e.dataset = NEW.dataset AND e.kind = 'clock' AND e.seq = NEW.seq AND e.at = NEW.at) THEN
		RAISE EXCEPTION 'the time of a dataset does not go back' USING ERRCODE = 'restrict_violation';
	END IF;
	RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER set_back AFTER UPDATE ON noisegate.chain DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	WHEN (NEW.at < OLD.at) EXECUTE FUNCTION noisegate.refuse_unless_set_back();

-- An account that was opened at a time of the future was opened then at the latest.
GRANT UPDATE (opened_at) ON noisegate.account TO noisegate;
