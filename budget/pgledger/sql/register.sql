-- Registers a plan.
--
-- $1 charge  $2 ε, $3 ρ of its slots
INSERT INTO noisegate.plan (plan_id, epsilon, rho) VALUES ($1, $2, $3)
