-- All versions of a dataset's policy, oldest first: digests of what is stored now.
--
-- $1 dataset
SELECT version, sha256(convert_to(document, 'UTF8')), sha256(convert_to(metadata::text, 'UTF8')), digest, applied_by, applied_at, coalesce(entry, 0), raised_by
FROM noisegate.policy WHERE dataset = $1 ORDER BY version
