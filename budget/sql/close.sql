-- Ends an open charge; returns one row when it did.
--
-- $1 charge  $2 new state  $3 kind of entry  $4 ε  $5 unbounded  $6 ρ  $7 δ: what it counts as from now on, NULL for all that was
-- reserved  $8 answer or NULL
--
-- Locks the charge, then, if it counts as less from now on, its accounts in their order, as sql/reserve.sql does.
WITH held AS (
	SELECT c.*, coalesce($4, c.epsilon) AS now_epsilon, coalesce($5, c.unbounded) AS now_unbounded, coalesce($6, c.rho) AS now_rho,
		coalesce($7, c.delta) AS now_delta
	FROM noisegate.charge c
	WHERE c.charge_id = $1 AND c.state = 'open'
	FOR NO KEY UPDATE
), locked AS (
	SELECT a.account_id
	FROM held JOIN noisegate.account a ON a.account_id = ANY (held.account_ids)
	WHERE (held.epsilon, held.unbounded, held.rho, held.delta) <> (now_epsilon, now_unbounded, now_rho, now_delta)
	ORDER BY a.scope, a.name
	FOR NO KEY UPDATE OF a
), moved AS (
	UPDATE noisegate.account a SET
		used_epsilon = a.used_epsilon - held.epsilon + held.now_epsilon, used_rho = a.used_rho - held.rho + held.now_rho,
		used_delta = a.used_delta - held.delta + held.now_delta,
		used_unbounded = a.used_unbounded - held.unbounded::int + held.now_unbounded::int
	FROM held, locked WHERE a.account_id = locked.account_id
), closed AS (
	UPDATE noisegate.charge c SET state = $2, closed_at = clock_timestamp(), answer = $8,
		epsilon = held.now_epsilon, unbounded = held.now_unbounded, rho = held.now_rho, delta = held.now_delta
	FROM held
	-- Only now: who asks the same question waits, with the accounts locked, for a charge that is being changed.
	WHERE c.charge_id = held.charge_id AND (SELECT count(*) FROM locked) >= 0
), written AS (
	INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, charge_id, epsilon, unbounded, rho, delta)
	SELECT $3, dataset, analyst, account_ids, charge_id, now_epsilon, now_unbounded, now_rho, now_delta FROM held
	WHERE (SELECT count(*) FROM locked) >= 0 -- the journal has the order in which balances moved
)
SELECT charge_id FROM held
