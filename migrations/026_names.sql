-- Questions, and what they release, have other names from now on (docs/decisions/0074). What was asked under policies of before is looked
-- for by its earlier name, too. A gateway from before this migration writes nothing after it, so that no such name is added.

CREATE TABLE noisegate.renamed (
	dataset text PRIMARY KEY,
	version bigint NOT NULL -- of the policy that was in force
);
INSERT INTO noisegate.renamed SELECT dataset, max(version) FROM noisegate.policy GROUP BY dataset;

GRANT SELECT ON noisegate.renamed TO noisegate;
