-- A settlement may count as less for the accounts that answer for the people in the data, the dataset's and the ensemble's, than for the analyst's and groups' own: what
-- was released to somebody before, and is given to another analyst, costs that analyst and loses nothing once more (budget.Apart).

-- ε, unbounded, ρ, δ, tail; NULL: as for the others. Never more than those.
ALTER TABLE noisegate.charge
	ADD COLUMN shared bigint[],
	ADD CONSTRAINT shared_is_less CHECK (shared IS NULL OR state = 'settled' AND cardinality(shared) = 5 AND array_position(shared, NULL) IS NULL
		AND shared[1] BETWEEN 0 AND epsilon AND shared[2] BETWEEN 0 AND unbounded::int AND shared[3] BETWEEN 0 AND rho
		AND shared[4] BETWEEN 0 AND delta AND shared[5] BETWEEN 0 AND tail);

ALTER TABLE noisegate.entry
	ADD COLUMN shared bigint[],
	ADD CONSTRAINT entry_shared_is_less CHECK (shared IS NULL OR kind = 'settle' AND cardinality(shared) = 5 AND array_position(shared, NULL) IS NULL
		AND shared[1] BETWEEN 0 AND epsilon AND shared[2] BETWEEN 0 AND unbounded::int AND shared[3] BETWEEN 0 AND rho
		AND shared[4] BETWEEN 0 AND delta AND shared[5] BETWEEN 0 AND tail);

GRANT UPDATE (shared) ON noisegate.charge TO noisegate;
