-- What charges released: groups and noisy values, never exact ones. Questions that show the same release in another way are answered from it.

CREATE TABLE noisegate.released (
	charge_id text   COLLATE "C" PRIMARY KEY REFERENCES noisegate.charge, -- that paid for it
	dataset   text   NOT NULL,
	identity  bytea  NOT NULL CHECK (octet_length(identity) = 32),
	vals      text   NOT NULL CHECK (octet_length(vals) BETWEEN 1 AND 4194304)
);

CREATE INDEX released_identity ON noisegate.released (identity, charge_id);

CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON noisegate.released FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.released FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.released TO noisegate;
