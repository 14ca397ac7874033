-- Who may have a released label again, free: whoever paid for it. A label is drawn once and charged to the dataset once; every buyer pays
-- an account of their own for it.

CREATE TABLE noisegate.pate_purchase (
	ensemble_id bigint  NOT NULL,
	buyer       text    COLLATE "C" NOT NULL CHECK (buyer <> ''), -- a subject
	question    bytea   NOT NULL CHECK (octet_length(question) = 32),
	query_no    integer NOT NULL,
	charge_id   text    COLLATE "C" NOT NULL CHECK (charge_id <> ''), -- that paid for it
	PRIMARY KEY (ensemble_id, buyer, question, query_no)
);

-- What was bought before belongs to those who paid for it.
INSERT INTO noisegate.pate_purchase (ensemble_id, buyer, question, query_no, charge_id)
SELECT a.ensemble_id, c.analyst, a.question, a.query_no, a.charge_id
FROM noisegate.pate_answer a JOIN noisegate.charge c ON c.charge_id = a.charge_id;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.pate_purchase FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.pate_purchase FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.pate_purchase TO noisegate;
