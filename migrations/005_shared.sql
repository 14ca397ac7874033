-- What was released of questions that may be asked again at another price, where the policy shares releases: noisy values, never exact ones.

CREATE TABLE noisegate.shared (
	charge_id text   COLLATE "C" PRIMARY KEY REFERENCES noisegate.charge, -- that paid for the newest part of it
	dataset   text   NOT NULL,
	question  bytea  NOT NULL CHECK (octet_length(question) = 32),
	rho       bigint NOT NULL CHECK (rho > 0), -- all of it together, in units of 10⁻¹²: the more, the more accurate
	vector    text   NOT NULL CHECK (octet_length(vector) <= 1048576)
);

CREATE INDEX shared_best ON noisegate.shared (question, rho DESC, charge_id);

CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON noisegate.shared FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON noisegate.shared FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.shared TO noisegate;
