import datetime
import decimal

import psycopg
from common import BY_REGION, PEOPLE, REGIONS, check, end, left, near

notices = []
conn = psycopg.connect("", autocommit=True)
conn.add_notice_handler(lambda d: notices.append((d.severity, d.message_primary, d.message_detail)))


def budget():
    return left(conn.execute("SHOW noisegate.budget").fetchone()[0])


with check("the connection"):
    assert conn.info.server_version >= 140000 and conn.info.dbname == "census" and conn.info.encoding == "utf-8"
with check("rows and types"):
    cur = conn.execute(BY_REGION)
    rows = cur.fetchall()
    assert [r[0] for r in rows] == REGIONS and isinstance(rows[0][1], int) and isinstance(rows[0][2], decimal.Decimal), rows
    assert [(c.name, c.type_code) for c in cur.description] == [("region", 25), ("n", 20), ("mean", 1700)], cur.description
with check("the notice of a charge"):
    assert len(notices) == 1 and notices[0][0] == "NOTICE" and "spent ε 0.1; ε 29.9 left" in notices[0][1], notices
with check("a replay is free, and binary"):
    before = budget()
    assert conn.execute(BY_REGION, binary=True).fetchall() == rows and budget() == before and len(notices) == 2
    severity, told, detail = notices[1]
    assert severity == "NOTICE" and "a replay of " in told and "spent nothing; ε 29.9 left" in told, notices
    assert detail.endswith("later rows are not in it; latest costs ε 0.1"), notices
with check("the values of a parameter are its constants"):
    one = conn.execute("SELECT count(*) AS n FROM people WHERE age >= 40").fetchone()
    before = budget()
    assert conn.execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,)).fetchone() == one and budget() == before
with check("binary parameters"):
    before = budget()
    assert conn.execute("SELECT count(*) AS n FROM people WHERE age >= %b", (40,)).fetchone() == one and budget() == before
with check("parameters of all types"):
    n, = conn.execute("SELECT count(*) AS n FROM visits WHERE region = %s AND day >= %s AND amount < %s AND amount > %s",
                      ("East", datetime.date(2025, 1, 1), decimal.Decimal("499.5"), 0.1)).fetchone()
    near(n, PEOPLE / 4)
with check("a list as parameter is its constants"):
    two = conn.execute("SELECT count(*) AS n FROM visits WHERE region IN ('East', 'West')").fetchone()
    near(two[0], PEOPLE / 2)
    before = budget()
    for form in ("%s", "%b", "%t", "%s::text[]"):
        assert conn.execute(f"SELECT count(*) AS n FROM visits WHERE region = ANY({form})", (["East", "West"],)).fetchone() == two, form
    assert budget() == before
with check("a NULL as parameter"):
    conn.execute("SELECT count(*) AS n FROM people WHERE age > %s", (None,))
with check("prepared after five times"):
    for _ in range(8):
        assert conn.execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,)).fetchone() == one
    assert conn.execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,), prepare=True).fetchone() == one
with check("dates and timestamps"):
    months = conn.execute("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1", binary=True).fetchall()
    assert len(months) == 12 and months[11][0].month == 12, months
with check("constants, text and binary"):
    for binary in (False, True):
        row = conn.execute("SELECT true AS yes, NULL::bool AS no, 1.5::float8 AS x, date '2025-02-03' AS d, 'ü' AS t, 12.50::numeric AS m",
                           binary=binary).fetchone()
        assert row == (True, None, 1.5, datetime.date(2025, 2, 3), "ü", decimal.Decimal("12.50")), row
with check("rows of people are refused"):
    before = budget()
    try:
        conn.execute("SELECT age FROM people")
        raise AssertionError("rows of people")
    except psycopg.errors.InsufficientPrivilege as e:
        assert e.sqlstate == "42501" and e.diag.message_detail == "policy/not-aggregate" and e.diag.message_hint
        assert int(e.diag.statement_position) > 0 and e.diag.severity_nonlocalized == "ERROR"
    assert budget() == before
with check("a server cursor"):
    with conn.transaction(), conn.cursor("chunks") as c:
        c.itersize = 2
        c.execute(BY_REGION)
        assert c.description[0].name == "region" and list(c) == rows
with check("a server cursor with parameters, binary, WITH HOLD"):
    with psycopg.connect("") as other, other.cursor("pieces", withhold=True) as c:
        c.execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,), binary=True)
        other.commit()
        assert c.fetchone() == one and c.fetchone() is None
with check("moving a cursor"):
    with conn.transaction(), conn.cursor("moved") as c:
        c.execute(BY_REGION)
        c.scroll(2)
        assert c.fetchone() == rows[2]
with check("COPY as rows"):
    with conn.cursor().copy("COPY (" + BY_REGION + ") TO STDOUT") as copy:
        copy.set_types(["text", "int8", "numeric"])
        assert list(copy.rows()) == rows
with check("COPY as binary rows"):
    with conn.cursor().copy("COPY (" + BY_REGION + ") TO STDOUT (FORMAT BINARY)") as copy:
        copy.set_types(["text", "int8", "numeric"])
        assert list(copy.rows()) == rows
with check("COPY with a parameter"):
    with conn.cursor().copy("COPY (SELECT count(*) AS n FROM people WHERE age >= %s) TO STDOUT", (40,)) as copy:
        copy.set_types(["int8"])
        assert list(copy.rows()) == [one]
with check("nested transactions"):
    with conn.transaction():
        try:
            with conn.transaction():
                conn.execute("SELECT age FROM people")
        except psycopg.errors.InsufficientPrivilege:
            pass
        assert conn.execute("SELECT 1").fetchone() == (1,)
with check("a pipeline"):
    if psycopg.Pipeline.is_supported():
        with conn.pipeline():
            a, b = conn.execute(BY_REGION), conn.execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,))
        assert a.fetchall() == rows and b.fetchone() == one
with check("a pipeline with an error"):
    if psycopg.Pipeline.is_supported():
        try:
            with conn.pipeline():
                conn.execute("SELECT 1")
                conn.execute("SELECT age FROM people")
                conn.execute("SELECT 2")
            raise AssertionError("no error")
        except psycopg.errors.InsufficientPrivilege:
            pass
        assert conn.execute("SELECT 3").fetchone() == (3,)
with check("executemany with results"):
    cur = conn.cursor()
    cur.executemany("SELECT count(*) AS n FROM people WHERE age >= %s", [(40,), (40,)], returning=True)
    got = [cur.fetchone()]
    while cur.nextset():
        got.append(cur.fetchone())
    assert got == [one, one], got
with check("a stream"):
    assert list(conn.cursor().stream(BY_REGION)) == rows
with check("a client-side cursor"):
    assert psycopg.ClientCursor(conn).execute("SELECT count(*) AS n FROM people WHERE age >= %s", (40,)).fetchone() == one
with check("type information"):
    info = psycopg.types.TypeInfo.fetch(conn, "numeric")
    assert info.oid == 1700, info
with check("settings of a transaction"):
    with psycopg.connect("") as other:
        other.isolation_level, other.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        assert other.execute("SHOW transaction_read_only").fetchone() == ("on",)
with check("an unknown dataset"):
    try:
        psycopg.connect("dbname=nothing")
        raise AssertionError("connected")
    except psycopg.OperationalError as e:
        assert 'database "nothing" does not exist' in str(e), e
conn.close()
end()
