-- Collections of randomised reports: what devices sent under local differential privacy. Nothing here is a true value, and no dataset's budget is charged for it.

-- What a collection asks never changes: reports were randomised under it.
CREATE TABLE noisegate.collector (
	collector_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name         text COLLATE "C" NOT NULL UNIQUE CHECK (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
	definition   json        NOT NULL,
	defined_by   text        NOT NULL CHECK (defined_by <> ''),
	defined_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One report of each device and round.
CREATE TABLE noisegate.collect_report (
	collector_id bigint  NOT NULL REFERENCES noisegate.collector,
	round        integer NOT NULL CHECK (round >= 1),
	device       bytea   NOT NULL CHECK (octet_length(device) = 32), -- SHA-256 of collection and device
	report       text    NOT NULL CHECK (report <> ''), -- a JSON list of whole numbers
	PRIMARY KEY (collector_id, round, device)
);

-- What estimates need of the reports of a round: how many, and sums. Written with the reports that it counts.
CREATE TABLE noisegate.collect_tally (
	collector_id bigint   NOT NULL REFERENCES noisegate.collector,
	round        integer  NOT NULL CHECK (round >= 1),
	reports      bigint   NOT NULL CHECK (reports >= 0),
	cells        bigint[] NOT NULL CHECK (array_position(cells, NULL) IS NULL),
	PRIMARY KEY (collector_id, round)
);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.collector FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.collector FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noisegate.collect_report FOR EACH ROW EXECUTE FUNCTION noisegate.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON noisegate.collect_report FOR EACH STATEMENT EXECUTE FUNCTION noisegate.refuse_change();

GRANT SELECT, INSERT ON noisegate.collector, noisegate.collect_report, noisegate.collect_tally TO noisegate;
GRANT UPDATE (reports, cells) ON noisegate.collect_tally TO noisegate;
