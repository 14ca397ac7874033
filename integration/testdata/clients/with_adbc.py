"""ADBC's driver: it fetches by binary COPY, and infers types of its own."""
import datetime
import os

import pyarrow as pa
from adbc_driver_postgresql import dbapi
from common import BY_REGION, MODE, PEOPLE, REGIONS, ROOT, check, end, near

NAMES = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD", "options": "PGOPTIONS"}
TEXT = " ".join("{}='{}'".format(name, os.environ[variable]) for name, variable in NAMES.items())
connection = dbapi.connect(f"{TEXT} sslmode={MODE} sslrootcert='{ROOT}'", autocommit=True)


def ask(sql, parameters=None):
    with connection.cursor() as c:
        c.execute(sql, parameters)
        return c.fetch_arrow_table()


def budget():
    return float(ask("SELECT remaining_epsilon::float8 FROM noisegate.budget").column(0)[0].as_py())


with check("a grouped question as a table of Arrow"):
    table = ask(BY_REGION)
    assert table.column_names == ["region", "n", "mean"] and table["region"].to_pylist() == REGIONS, table
    assert table["n"].type == pa.int64(), table.schema
    for n in table["n"].to_pylist():
        near(n, PEOPLE / 4, 9900)
with check("a replay is free"):
    before = budget()
    assert ask(BY_REGION).equals(table) and budget() == before
with check("it was charged once"):
    assert abs(budget() - 29.9) < 1e-9, budget()
with check("SHOW, which no COPY can read"):
    with connection.cursor() as c:
        c.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        c.execute("SHOW noisegate.budget")
        assert c.fetchone()[0].startswith("ε 29.9 left")
with check("parameters"):
    near(ask("SELECT count(*) AS n FROM visits WHERE region = $1 AND day >= $2", ("East", datetime.date(2025, 1, 1)))["n"][0].as_py(), PEOPLE / 4)
with check("record batches"):
    with connection.cursor() as c:
        c.execute(BY_REGION)
        assert sum(batch.num_rows for batch in c.fetch_record_batch()) == 4
with check("rows of Python"):
    with connection.cursor() as c:
        c.execute(BY_REGION)
        assert [row[0] for row in c.fetchall()] == REGIONS
with check("dates"):
    months = ask("SELECT date_trunc('month', day)::date AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1")
    assert months["month"].type == pa.date32() and months.num_rows == 12, months.schema
with check("the schema of a question, before it is asked"):
    before = budget()
    with connection.cursor() as c:
        schema = c.adbc_execute_schema("SELECT sex, count(*) AS n FROM people WHERE age > 33 GROUP BY sex")
    assert schema.names == ["sex", "n"] and budget() == before, schema
with check("ends of intervals"):
    ends = ask("SELECT count(*) AS n, noise_interval_low(n) AS low FROM people")
    assert float(ends["low"][0].as_py()) < ends["n"][0].as_py(), ends
with check("tables"):
    names = connection.adbc_get_objects(depth="columns", db_schema_filter="public").read_all().to_pylist()
    tables = {t["table_name"]: [c["column_name"] for c in t["table_columns"]]
              for catalog in names for schema in catalog["catalog_db_schemas"] for t in schema["db_schema_tables"]}
    assert sorted(tables) == ["people", "regions", "visits"] and sorted(tables["visits"]) == ["amount", "day", "region"], tables
with check("the schema of a table"):
    assert sorted(connection.adbc_get_table_schema("visits").names) == ["amount", "day", "region"]
with check("kinds of tables"):
    assert "table" in connection.adbc_get_table_types()
with check("what the driver says of the server"):
    assert connection.adbc_get_info()["vendor_name"] == "PostgreSQL"
with check("a public table"):
    assert sorted(ask("SELECT name FROM regions")["name"].to_pylist()) == REGIONS
with check("rows of people are refused"):
    before = budget()
    try:
        ask("SELECT age FROM people")
        raise AssertionError("rows of people")
    except dbapi.Error as e:
        assert e.sqlstate == "42501", (e.sqlstate, e)
    assert budget() == before
with check("ingesting is refused"):
    try:
        with connection.cursor() as c:
            c.adbc_ingest("mine", table)
        raise AssertionError("written")
    except dbapi.Error as e:
        assert "cannot execute CREATE TABLE in a read-only transaction" in str(e), e
connection.close()
end()
