-- What charges released: groups and noisy values, never exact ones. Questions that show the same release in another way are answered from it.

CREATE TABLE noisegate.released (
	charge_id text   COLLATE "C" PRIMARY KEY REFERENCES noisegate.charge, -- that paid for it
	dataset   text   NOT NULL,
	analyst   text   NOT NULL, -- who paid
	shared    boolean NOT NULL, -- whether the policy gave releases to others when it was bought
	identity  bytea  NOT NULL CHECK (octet_length(identity) = 32),
	vals      text   NOT NULL CHECK (octet_length(vals) BETWEEN 1 AND 4194304)
);

-- Look-ups of one analyst's own releases take no time that tells what others bought.
CREATE INDEX released_own ON noisegate.released (identity, analyst, charge_id);
CREATE INDEX released_shared ON noisegate.released (identity, charge_id) WHERE shared;

CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON noisegate.released FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.released FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.released TO noisegate;
