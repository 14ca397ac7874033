-- The digest of facts, as policies.sql gives it once they are stored.
--
-- $1 facts
SELECT sha256(convert_to($1::text::jsonb::text, 'UTF8'))
