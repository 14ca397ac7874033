-- Votes of teacher ensembles, and the labels that were released from them.
--
-- Votes are protected data: counts of every class for every query, in one row each. Once a version is sealed nothing about it changes
-- any more, whoever asks; another upload is another version, and spends from the same account.

ALTER TYPE noisegate.scope ADD VALUE 'ensemble'; -- accounts of ensembles are locked after those of analysts

CREATE TABLE noisegate.pate_ensemble (
	ensemble_id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- of one version
	name                    text COLLATE "C" NOT NULL CHECK (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
	version                 bigint      NOT NULL CHECK (version >= 1),
	dataset                 text        NOT NULL CHECK (dataset <> ''),
	classes                 text[]      NOT NULL CHECK (cardinality(classes) >= 2),
	teachers                bigint      NOT NULL CHECK (teachers BETWEEN 1 AND 65535),
	max_teachers_per_person bigint      NOT NULL CHECK (max_teachers_per_person BETWEEN 1 AND teachers),
	partition_sha256        bytea CHECK (octet_length(partition_sha256) = 32), -- declared: how people were dealt out to teachers
	sanitise                json, -- parameters of the sanitised ε, fixed before any vote was seen
	defined_by              text        NOT NULL CHECK (defined_by <> ''),
	defined_at              timestamptz NOT NULL DEFAULT clock_timestamp(),

	-- Of the votes, once there are any. The digest is SHA-256 over every query's name and counts.
	queries                 bigint CHECK (queries >= 1),
	digest                  bytea CHECK (octet_length(digest) = 32),
	loaded_by               text,
	loaded_at               timestamptz,

	sealed_by               text,
	sealed_at               timestamptz,

	UNIQUE (name, version),
	CHECK ((queries IS NULL) = (digest IS NULL) AND (queries IS NULL) = (loaded_by IS NULL) AND (queries IS NULL) = (loaded_at IS NULL)),
	CHECK ((sealed_by IS NULL) = (sealed_at IS NULL)),
	CHECK (sealed_at IS NULL OR queries IS NOT NULL)
);

-- One version at a time is being prepared.
CREATE UNIQUE INDEX pate_draft ON noisegate.pate_ensemble (name) WHERE sealed_at IS NULL;

CREATE TRIGGER sealed BEFORE UPDATE OR DELETE ON noisegate.pate_ensemble FOR EACH ROW
	WHEN (OLD.sealed_at IS NOT NULL) EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.pate_ensemble FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

CREATE TABLE noisegate.pate_votes (
	ensemble_id bigint NOT NULL,
	query_no    integer NOT NULL CHECK (query_no >= 0),
	key         text COLLATE "C" NOT NULL CHECK (key <> ''), -- what clients call the query; not protected
	counts      bytea NOT NULL, -- by class: big-endian, 2 bytes for each count
	PRIMARY KEY (ensemble_id, query_no),
	UNIQUE (ensemble_id, key)
);

-- Compressed, counts would be the shorter, and the faster to read, the more teachers agree.
ALTER TABLE noisegate.pate_votes ALTER COLUMN counts SET STORAGE EXTERNAL;

-- Votes come and go only while their version is being prepared. The version is locked against being sealed meanwhile: whoever seals it
-- waits for the end of the load, or comes first and makes the load fail here.
CREATE FUNCTION noisegate.refuse_sealed_votes() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
	touched bigint;
BEGIN
	FOR touched IN SELECT DISTINCT ensemble_id FROM changed LOOP
		PERFORM FROM noisegate.pate_ensemble e WHERE e.ensemble_id = touched AND e.sealed_at IS NULL FOR SHARE;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'votes change only while their version is being prepared' USING ERRCODE = 'restrict_violation';
		END IF;
	END LOOP;
	RETURN NULL;
END
$$;
CREATE TRIGGER draft_insert AFTER INSERT ON noisegate.pate_votes REFERENCING NEW TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_sealed_votes();
CREATE TRIGGER draft_delete AFTER DELETE ON noisegate.pate_votes REFERENCING OLD TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_sealed_votes();
CREATE TRIGGER kept BEFORE UPDATE ON noisegate.pate_votes FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.pate_votes FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

-- Every outcome that was ever released, rejections too: who asks again gets the same one, free. A question is SHA-256 over mechanism,
-- parameters and, where one is part of it, the student's probabilities.
CREATE TABLE noisegate.pate_answer (
	ensemble_id bigint NOT NULL,
	question    bytea   NOT NULL CHECK (octet_length(question) = 32),
	query_no    integer NOT NULL,
	status      text    NOT NULL CHECK (status IN ('answered', 'rejected', 'reinforced')),
	label       integer CHECK (label >= 0), -- of a class
	histogram   bigint[], -- noisy
	charge_id   text COLLATE "C" NOT NULL CHECK (charge_id <> ''), -- that paid for it
	PRIMARY KEY (ensemble_id, question, query_no),
	CHECK ((status = 'rejected') = (label IS NULL)),
	CHECK (histogram IS NULL OR status = 'answered')
);

-- The sanitised ε of what was released so far: drawn once.
CREATE TABLE noisegate.pate_epsilon (
	ensemble_id bigint NOT NULL REFERENCES noisegate.pate_ensemble,
	question    bytea  NOT NULL CHECK (octet_length(question) = 32),
	answer      json   NOT NULL,
	charge_id   text COLLATE "C" NOT NULL REFERENCES noisegate.charge,
	PRIMARY KEY (ensemble_id, question)
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.pate_answer FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.pate_answer FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.pate_epsilon FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.pate_epsilon FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT, DELETE ON noisegate.pate_ensemble, noisegate.pate_votes TO noisegate;
GRANT UPDATE (queries, digest, loaded_by, loaded_at, sealed_by, sealed_at) ON noisegate.pate_ensemble TO noisegate;
GRANT SELECT, INSERT ON noisegate.pate_answer, noisegate.pate_epsilon TO noisegate;
