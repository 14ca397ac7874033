-- Registered plans: ordered lists of noises that one charge paid for at once. Queries draw the slots in order.

CREATE TABLE noisegate.plan (
	plan_id   text COLLATE "C" PRIMARY KEY REFERENCES noisegate.charge,
	-- By slot, in units of 10⁻¹²: ε of Laplace noise, or ρ of Gaussian noise; the other is 0.
	epsilon   bigint[] NOT NULL CHECK (0 <= ALL (epsilon) AND array_position(epsilon, NULL) IS NULL),
	rho       bigint[] NOT NULL CHECK (0 <= ALL (rho) AND array_position(rho, NULL) IS NULL),
	next_slot integer  NOT NULL DEFAULT 0, -- counted from 0; those before it are gone
	CHECK (cardinality(epsilon) BETWEEN 1 AND 1000 AND cardinality(rho) = cardinality(epsilon)),
	CHECK (next_slot BETWEEN 0 AND cardinality(epsilon))
);

-- What was paid for never changes, and no slot is drawn twice.
CREATE TRIGGER forward BEFORE UPDATE ON noisegate.plan FOR EACH ROW
	WHEN (NEW.next_slot < OLD.next_slot
		OR (NEW.plan_id, NEW.epsilon, NEW.rho) IS DISTINCT FROM (OLD.plan_id, OLD.epsilon, OLD.rho))
	EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON noisegate.plan FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.plan FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.plan TO noisegate;
GRANT UPDATE (next_slot) ON noisegate.plan TO noisegate;
