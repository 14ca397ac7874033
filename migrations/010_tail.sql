-- Releases that have a ρ and no pure ε count in the ε clause of accounts as well: as (ε, tail)-DP. What was charged before has no tail, and is unbounded as it was.

ALTER TABLE noisegate.account
	ADD COLUMN used_tail     bigint NOT NULL DEFAULT 0 CHECK (used_tail >= 0),
	ADD COLUMN reserved_tail bigint NOT NULL DEFAULT 0,
	DROP CONSTRAINT within_the_ceiling,
	DROP CONSTRAINT reserved_is_used,
	-- The rule of budget.Limit; a sum beyond bigint is an error and fails the charge as well. Tails may sum to budget.Limit.tails.
	ADD CONSTRAINT within_the_ceiling CHECK (
		used_delta <= delta_ceiling - least(used_tail, CASE WHEN form = 'approx' THEN total_delta / 32 ELSE 0 END) AND (
			used_unbounded = 0 AND used_epsilon <= epsilon_ceiling AND used_tail <= CASE WHEN form = 'approx' THEN total_delta / 32 ELSE 0 END
			OR used_rho <= rho_ceiling)
	),
	ADD CONSTRAINT reserved_is_used CHECK (reserved_epsilon BETWEEN 0 AND used_epsilon AND reserved_unbounded BETWEEN 0 AND used_unbounded
		AND reserved_rho BETWEEN 0 AND used_rho AND reserved_delta BETWEEN 0 AND used_delta AND reserved_tail BETWEEN 0 AND used_tail);

ALTER TABLE noisegate.charge
	ADD COLUMN tail bigint NOT NULL DEFAULT 0 CHECK (tail >= 0 AND (tail = 0 OR NOT unbounded)),
	ADD CONSTRAINT voided_has_no_tail CHECK (state <> 'voided' OR tail = 0);

ALTER TABLE noisegate.entry ADD COLUMN tail bigint NOT NULL DEFAULT 0 CHECK (tail >= 0 AND (tail = 0 OR NOT unbounded));

DROP TRIGGER transition ON noisegate.charge;
CREATE TRIGGER transition BEFORE UPDATE ON noisegate.charge FOR EACH ROW
	WHEN (OLD.state <> 'open' OR NEW.state = 'open' OR NEW.epsilon > OLD.epsilon OR NEW.rho > OLD.rho OR NEW.delta > OLD.delta
		OR NEW.unbounded AND NOT OLD.unbounded OR NEW.tail > OLD.tail)
	EXECUTE FUNCTION noisegate.refuse_transition();

GRANT UPDATE (used_tail, reserved_tail) ON noisegate.account TO noisegate;
GRANT UPDATE (tail) ON noisegate.charge TO noisegate;
