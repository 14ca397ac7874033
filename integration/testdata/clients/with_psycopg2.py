import datetime
import decimal
import io

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from common import BY_REGION, PEOPLE, REGIONS, check, end, left, near

conn = psycopg2.connect("")
conn.autocommit = True
cur = conn.cursor()


def budget():
    with conn.cursor() as c:
        c.execute("SHOW noisegate.budget")
        return left(c.fetchone()[0])


with check("the connection"):
    assert conn.server_version >= 140000 and conn.encoding == "UTF8" and conn.info.dbname == "census"
    assert conn.get_parameter_status("integer_datetimes") == "on" and conn.info.ssl_in_use == (conn.info.dsn_parameters["sslmode"] != "disable")
with check("rows and types"):
    cur.execute(BY_REGION)
    rows = cur.fetchall()
    assert [r[0] for r in rows] == REGIONS and isinstance(rows[0][1], int) and isinstance(rows[0][2], decimal.Decimal), rows
    for r in rows:
        near(r[1], PEOPLE / 4, 9900)
with check("description"):
    assert [(d.name, d.type_code) for d in cur.description] == [("region", 25), ("n", 20), ("mean", 1700)], cur.description
with check("the notice of a charge"):
    assert len(conn.notices) == 1 and "spent ε 0.1; ε 29.9 left" in conn.notices[0], conn.notices
with check("a replay is free"):
    before = budget()
    cur.execute(BY_REGION)
    assert cur.fetchall() == rows and budget() == before and len(conn.notices) == 2
    assert "a replay of " in conn.notices[1] and "spent nothing; ε 29.9 left" in conn.notices[1], conn.notices
    assert "later rows are not in it; latest costs ε 0.1" in conn.notices[1], conn.notices
with check("parameters"):
    cur.execute("SELECT count(*) AS n FROM visits WHERE region = %s AND day >= %s AND amount < %s",
                ("East", datetime.date(2025, 1, 1), decimal.Decimal("499.5")))
    near(cur.fetchone()[0], PEOPLE / 4)
    assert cur.rowcount == 1 and cur.statusmessage == "SELECT 1"
with check("a list as parameter"):
    cur.execute("SELECT count(*) AS n FROM visits WHERE region IN %s", (("East", "West"),))
    near(cur.fetchone()[0], PEOPLE / 2)
with check("an array, which becomes a constant"):
    cur.execute("SELECT count(*) AS n FROM visits WHERE region = ANY(%s)", (["East", "West"],))
    near(cur.fetchone()[0], PEOPLE / 2)
with check("dates as keys"):
    cur.execute("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1")
    months = cur.fetchall()
    assert len(months) == 12 and months[0][0].year == 2025 and months[0][0].month == 1, months
with check("truth values"):
    cur.execute("SELECT true AS yes, NULL::bool AS unknown, 1.5::float8 AS x, date '2025-02-03' AS d, 'ü' AS text")
    assert cur.fetchone() == (True, None, 1.5, datetime.date(2025, 2, 3), "ü")
with check("rows of people are refused"):
    before = budget()
    try:
        cur.execute("SELECT age FROM people")
        raise AssertionError("rows of people")
    except psycopg2.errors.InsufficientPrivilege as e:
        assert e.pgcode == "42501" and e.diag.message_detail == "policy/not-aggregate" and e.diag.message_hint
        assert e.diag.severity == "ERROR" and int(e.diag.statement_position) > 0 and "SELECT age" in str(e), e.diag.message_primary
    assert budget() == before
with check("an unknown column"):
    try:
        cur.execute("SELECT count(nothing) FROM people")
        raise AssertionError("an unknown column")
    except psycopg2.errors.UndefinedColumn as e:
        assert e.diag.statement_position == "14", e.diag.statement_position
with check("writing is refused"):
    try:
        cur.execute("INSERT INTO regions VALUES ('x')")
        raise AssertionError("written")
    except psycopg2.errors.ReadOnlySqlTransaction:
        pass
with check("a failed transaction"):
    with psycopg2.connect("") as other, other.cursor() as c:
        try:
            c.execute("SELECT age FROM people")
        except psycopg2.Error:
            pass
        assert other.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INERROR
        try:
            c.execute("SELECT 1")
            raise AssertionError("went on")
        except psycopg2.errors.InFailedSqlTransaction:
            pass
        other.rollback()
        c.execute("SELECT 1")
    other.close()
with check("a named cursor"):
    with psycopg2.connect("") as other:
        with other.cursor("chunks") as c:
            c.itersize = 3
            c.execute(BY_REGION)
            assert list(c) == rows
    other.close()
with check("a named cursor in pieces"):
    with psycopg2.connect("") as other:
        with other.cursor("pieces", withhold=True) as c:
            c.execute(BY_REGION)
            assert c.fetchmany(2) == rows[:2] and c.fetchone() == rows[2]
            other.commit()
            assert c.fetchall() == rows[3:]
    other.close()
with check("copy_expert as CSV"):
    out = io.StringIO()
    cur.copy_expert("COPY (SELECT region, count(*) AS n, avg(amount) AS mean FROM visits GROUP BY region ORDER BY region) "
                    "TO STDOUT (FORMAT csv, HEADER)", out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "region,n,mean" and lines[1].split(",")[:2] == ["East", str(rows[0][1])], lines
for copied, refused in {"people": psycopg2.errors.FeatureNotSupported, "(SELECT * FROM people)": psycopg2.errors.InsufficientPrivilege}.items():
    with check(f"COPY {copied} is refused"):
        try:
            cur.copy_expert(f"COPY {copied} TO STDOUT", io.StringIO())
            raise AssertionError("copied")
        except refused:
            pass
with check("several statements in one"):
    cur.execute("SELECT 1; SELECT 2 AS two")
    assert cur.fetchall() == [(2,)]
with check("execute_values of nothing but constants"):
    cur.execute(cur.mogrify("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (i, t) ORDER BY i"))
    assert cur.fetchall() == [(1, "a"), (2, "b")]
with check("rows by name"):
    with conn.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as c:
        c.execute(BY_REGION)
        assert c.fetchone()["region"] == "East"
with check("session settings"):
    other = psycopg2.connect("", options="-c noisegate.epsilon=0.02")
    other.set_session(readonly=True, isolation_level="SERIALIZABLE", autocommit=True)
    with other.cursor() as c:
        c.execute("SELECT sum(age) AS s FROM people")
    assert "spent ε 0.02" in other.notices[0], other.notices
    other.close()
with check("savepoints"):
    with psycopg2.connect("") as other, other.cursor() as c:
        c.execute("SAVEPOINT a")
        try:
            c.execute("SELECT age FROM people")
        except psycopg2.Error:
            c.execute("ROLLBACK TO SAVEPOINT a")
        c.execute("SELECT 1")
        assert c.fetchone() == (1,)
    other.close()
with check("cancel of nothing"):
    conn.cancel()
    cur.execute("SELECT 1")
with check("an unknown dataset"):
    try:
        psycopg2.connect("dbname=nothing")
        raise AssertionError("connected")
    except psycopg2.OperationalError as e:
        assert 'database "nothing" does not exist' in str(e), e
with check("a wrong token"):
    try:
        psycopg2.connect("password=wrong")
        raise AssertionError("connected")
    except psycopg2.OperationalError as e:
        assert "password authentication failed" in str(e), e
conn.close()
end()
