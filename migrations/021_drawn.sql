-- Plans after a failover (docs/decisions/0043): which entries say what was drawn, and which gateways may know more.

-- mechanisms of settlements and recharges: the slots of a plan that they drew, if they did. The old rule, which was
-- narrower, held for all rows so far.
ALTER TABLE noisegate.entry
	DROP CONSTRAINT entry_check2,
	ADD CONSTRAINT entry_mechanisms CHECK (CASE WHEN kind = 'reserve' THEN mechanisms IS NOT NULL
		ELSE mechanisms IS NULL OR kind IN ('settle', 'recharge') END) NOT VALID;

-- On which timeline a run was ended by others than itself.
ALTER TABLE noisegate.gateway ADD COLUMN ended_on bigint;
GRANT UPDATE (ended_on) ON noisegate.gateway TO noisegate;
