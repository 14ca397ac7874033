-- Releases of prepared copies have versions: a question is answered again from the latest that was released.

ALTER TABLE noisegate.released
	ADD COLUMN series bytea CHECK (octet_length(series) = 32), -- of all versions of one release; NULL: it has none
	ADD COLUMN as_of timestamptz,                              -- of which time its rows are
	ADD COLUMN data_version text,                              -- the name for the state of the data
	ADD CONSTRAINT released_version CHECK (num_nulls(series, as_of, data_version) IN (0, 3));

CREATE INDEX released_own_versions ON noisegate.released (series, analyst, as_of) WHERE series IS NOT NULL;
CREATE INDEX released_shared_versions ON noisegate.released (series, as_of) WHERE shared AND series IS NOT NULL;
