-- Reserves a charge on all of its accounts or on none, in one statement.
--
-- $1 charge  $2 dataset  $3 analyst  $4 scopes, $5 names of the accounts  $6 ε  $7 unbounded  $8 ρ  $9 δ
-- $10 mechanisms  $11 fingerprint  $12 key or NULL  $13 digest of the request  $14 request
-- $15 plan that is drawn from, or NULL  $16 its next slot, as the caller saw it  $17 how many slots
-- $18 ε, $19 ρ of the slots of a plan that the charge registers, or NULL
--
-- Returns whether it was reserved, whether an earlier charge decides about the request instead, how many of the accounts
-- exist, and whether only the slots stood in the way. Nothing changes unless it was reserved.
WITH earlier AS (
	SELECT FROM noisegate.charge c
	WHERE c.dataset = $2 AND c.analyst = $3 AND c.fingerprint = $11 AND c.state IN ('open', 'settled')
	UNION ALL
	SELECT FROM noisegate.request_key k JOIN noisegate.charge c USING (charge_id)
	WHERE k.analyst = $3 AND k.key = $12 AND c.state <> 'voided'
), account AS ( -- a replay locks nothing
	SELECT a.*
	FROM unnest($4::text[], $5::text[]) AS named (scope, name)
	JOIN noisegate.account a ON a.dataset = $2 AND a.scope = named.scope::noisegate.scope AND a.name = named.name
	WHERE NOT EXISTS (SELECT FROM earlier)
	ORDER BY a.scope, a.name
	FOR NO KEY UPDATE OF a
), verdict AS ( -- Limit.AdmitsQuery and Limit.Admits; differences cannot overflow
	SELECT array_agg(account_id) AS account_ids, count(*) = cardinality($4::text[]) AND bool_and(
		NOT replay_only
		AND (query_epsilon_cap = 0 OR CASE WHEN $7 THEN $8 <= query_rho_cap ELSE $6 <= query_epsilon_cap END)
		AND $6 < 9223372036854775807 - used_epsilon
		AND $8 < 9223372036854775807 - used_rho
		AND $9 < 9223372036854775807 - used_delta
		AND $9 <= delta_cap - used_delta
		AND (NOT $7 AND used_unbounded = 0 AND $6 <= epsilon_cap - used_epsilon OR $8 <= rho_cap - used_rho)
	) AS admitted
	FROM account
), slot AS ( -- locked after the accounts; who waited for another draw sees where that left the plan
	SELECT p.plan_id
	FROM noisegate.plan p
	WHERE p.plan_id = $15 AND p.next_slot = $16 AND p.next_slot + $17 <= cardinality(p.epsilon)
		AND EXISTS (SELECT FROM verdict WHERE admitted)
		AND EXISTS (SELECT FROM noisegate.charge c
			WHERE c.charge_id = p.plan_id AND c.dataset = $2 AND c.analyst = $3 AND c.state = 'settled')
	FOR NO KEY UPDATE OF p
), ready AS (
	SELECT account_ids FROM verdict WHERE admitted AND ($15::text IS NULL OR EXISTS (SELECT FROM slot))
), keyed AS ( -- a key whose charge was voided is free again; the foreign key fails the statement if the charge is not opened
	INSERT INTO noisegate.request_key AS k (analyst, key, digest, charge_id)
	SELECT $3, $12::text, $13, $1 FROM ready WHERE $12 IS NOT NULL
	ON CONFLICT (analyst, key) DO UPDATE SET digest = excluded.digest, charge_id = excluded.charge_id
		WHERE (SELECT c.state FROM noisegate.charge c WHERE c.charge_id = k.charge_id) = 'voided'
	RETURNING k.charge_id
), opened AS ( -- a race for the same question opens one charge
	INSERT INTO noisegate.charge (charge_id, dataset, analyst, account_ids, epsilon, unbounded, rho, delta, fingerprint, request)
	SELECT $1, $2, $3, account_ids, $6, $7, $8, $9, $11, $14
	FROM ready WHERE $12 IS NULL OR EXISTS (SELECT FROM keyed)
	ON CONFLICT DO NOTHING
	RETURNING account_ids
), moved AS (
	UPDATE noisegate.account a SET used_epsilon = a.used_epsilon + $6, used_rho = a.used_rho + $8,
		used_delta = a.used_delta + $9, used_unbounded = a.used_unbounded + $7::int
	FROM opened WHERE a.account_id = ANY (opened.account_ids)
), drawn AS (
	UPDATE noisegate.plan p SET next_slot = p.next_slot + $17
	FROM slot, opened WHERE p.plan_id = slot.plan_id
), registered AS (
	INSERT INTO noisegate.plan (plan_id, epsilon, rho)
	SELECT $1, $18::bigint[], $19::bigint[] FROM opened WHERE $18 IS NOT NULL
), written AS (
	INSERT INTO noisegate.entry (kind, dataset, analyst, account_ids, charge_id, epsilon, unbounded, rho, delta, mechanisms)
	SELECT 'reserve', $2, $3, account_ids, $1, $6, $7, $8, $9, $10 FROM opened
)
SELECT EXISTS (SELECT FROM opened), EXISTS (SELECT FROM earlier), (SELECT count(*) FROM account),
	EXISTS (SELECT FROM verdict WHERE admitted) AND NOT EXISTS (SELECT FROM ready)
