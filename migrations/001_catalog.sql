-- Policies of the protected datasets: every version that was ever in force, as it was written.

GRANT USAGE ON SCHEMA noisegate TO noisegate;
GRANT SELECT ON noisegate.schema_migration TO noisegate;

-- Refuses to change history. For tables that only ever grow; owners and superusers meet it too.
CREATE FUNCTION noisegate.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
	RAISE EXCEPTION '%.% is append-only', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TABLE noisegate.policy (
	dataset    text        NOT NULL CHECK (dataset ~ '^[a-z][a-z0-9_-]{0,62}$'),
	version    bigint      NOT NULL CHECK (version >= 1),
	document   text        NOT NULL CHECK (octet_length(document) <= 1048576),
	digest     bytea       NOT NULL CHECK (octet_length(digest) = 32),  -- of canonical document and metadata
	metadata   jsonb       NOT NULL,                                     -- what the document was checked against: pins, domains
	applied_by text        NOT NULL CHECK (applied_by <> ''),
	applied_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (dataset, version)
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.policy
	FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.policy
	FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.policy TO noisegate;
