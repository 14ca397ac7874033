-- Conditions of a question narrow its bounds from now on (docs/decisions/0081): such a question, and what it releases, have other names.
-- What was asked under policies of before is looked for by the name that it had, too. A gateway from before this migration writes nothing
-- after it, so that no such name is added.

CREATE TABLE noisegate.narrowed (
	dataset text PRIMARY KEY,
	version bigint NOT NULL -- of the policy that was in force
);
INSERT INTO noisegate.narrowed SELECT dataset, max(version) FROM noisegate.policy GROUP BY dataset;

GRANT SELECT ON noisegate.narrowed TO noisegate;
