-- Ends an open charge; returns one row when it did.
--
-- $1 charge  $2 new state  $3 kind of entry  $4 ε  $5 unbounded  $6 ρ  $7 δ: what it counts as from now on, NULL for all that was
-- reserved  $8 answer or NULL
--
-- Locks the charge, then its accounts in their order, as sql/reserve.sql does.
WITH held AS (
	SELECT c.*, coalesce($4, c.epsilon) AS now_epsilon, coalesce($5, c.unbounded) AS now_unbounded, coalesce($6, c.rho) AS now_rho,
		coalesce($7, c.delta) AS now_delta
	FROM noisegate.charge c
	WHERE c.charge_id = $1 AND c.state = 'open'
	FOR NO KEY UPDATE
), locked AS (
	SELECT a.account_id
	FROM held JOIN noisegate.account a ON a.account_id = ANY (held.account_ids)
	ORDER BY a.scope, a.name
	FOR NO KEY UPDATE OF a
), moved AS (
	UPDATE noisegate.account a SET
		reserved_epsilon = a.reserved_epsilon - held.epsilon, spent_epsilon = a.spent_epsilon + held.now_epsilon,
		reserved_rho = a.reserved_rho - held.rho, spent_rho = a.spent_rho + held.now_rho,
		reserved_delta = a.reserved_delta - held.delta, spent_delta = a.spent_delta + held.now_delta,
		reserved_unbounded = a.reserved_unbounded - held.unbounded::int,
		spent_unbounded = a.spent_unbounded + held.now_unbounded::int
	FROM held, locked WHERE a.account_id = locked.account_id
), closed AS (
	UPDATE noisegate.charge c SET state = $2, closed_at = clock_timestamp(), answer = $8,
		epsilon = held.now_epsilon, unbounded = held.now_unbounded, rho = held.now_rho, delta = held.now_delta
	FROM held WHERE c.charge_id = held.charge_id
), written AS (
	INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, charge_id, epsilon, unbounded, rho, delta)
	SELECT $3, dataset, analyst, account_ids, charge_id, now_epsilon, now_unbounded, now_rho, now_delta FROM held
)
SELECT charge_id FROM held
