-- Stores a version of a policy.
--
-- $1 dataset  $2 version  $3 text  $4 digest  $5 facts  $6 who  $7 time  $8 entry  $9 who raised caps last
INSERT INTO noisegate.policy (dataset, version, document, digest, metadata, applied_by, applied_at, entry, raised_by)
	VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9)
