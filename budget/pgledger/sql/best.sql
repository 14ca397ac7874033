-- The most accurate that is known of a question, of charges that cannot be taken back any more.
--
-- $1 dataset  $2 identities of the question
SELECT s.charge_id, s.dataset, s.question, s.rho, s.vector
FROM noisegate.shared s JOIN noisegate.charge c ON c.charge_id = s.charge_id
WHERE s.question = ANY ($2::bytea[]) AND s.dataset = $1 AND c.dataset = $1 AND c.state IN ('settled', 'expired')
ORDER BY s.rho DESC, s.charge_id
LIMIT 1
