import datetime
import decimal
import os

import pyodbc
from common import BY_REGION, MODE, PEOPLE, REGIONS, ROOT, check, end, left, near

E = os.environ
pyodbc.pooling = False


def connect(more=""):
    return pyodbc.connect(f"Driver={{PostgreSQL Unicode}};Server={E['PGHOST']};Port={E['PGPORT']};Database={E['PGDATABASE']};Uid={E['PGUSER']};"
                          f"Pwd={E['PGPASSWORD']};SSLmode={MODE};pqopt={{sslrootcert={ROOT}}};" + more, autocommit=True)


conn = connect()
cur = conn.cursor()


def budget():
    return left(conn.cursor().execute("SHOW noisegate.budget").fetchval())


with check("the connection"):
    assert conn.getinfo(pyodbc.SQL_DBMS_NAME) == "PostgreSQL" and conn.getinfo(pyodbc.SQL_DATABASE_NAME) == "census"
    assert int(conn.getinfo(pyodbc.SQL_DBMS_VER).split(".")[0]) >= 14, conn.getinfo(pyodbc.SQL_DBMS_VER)
with check("SQLTables"):
    assert sorted(t.table_name for t in cur.tables(schema="public", tableType="TABLE")) == ["people", "regions", "visits"]
with check("SQLTables of nothing"):
    assert cur.tables(table="nothing").fetchall() == []
with check("SQLTables of schemas and types"):
    cur.tables(catalog="", schema="%", table="").fetchall()
    cur.tables(catalog="%", schema="", table="").fetchall()
with check("SQLColumns"):
    columns = {c.column_name: c for c in cur.columns(table="visits")}
    assert sorted(columns) == ["amount", "day", "region"], columns
    assert columns["amount"].column_size == 8 and columns["amount"].decimal_digits == 2 and columns["day"].type_name == "date", columns["amount"]
with check("SQLPrimaryKeys"):
    assert [k.column_name for k in cur.primaryKeys("regions")] == ["name"]
with check("SQLForeignKeys"):
    cur.foreignKeys(table="regions").fetchall()
    cur.foreignKeys(foreignTable="visits").fetchall()
with check("SQLStatistics"):
    cur.statistics("regions").fetchall()
with check("SQLSpecialColumns"):
    cur.rowIdColumns("regions").fetchall()
    cur.rowVerColumns("regions").fetchall()
with check("SQLProcedures"):
    assert cur.procedures(schema="public").fetchall() == []
    assert cur.procedureColumns(schema="public").fetchall() == []
with check("SQLGetTypeInfo"):
    assert len(cur.getTypeInfo().fetchall()) > 10
with check("rows and types"):
    rows = cur.execute(BY_REGION).fetchall()
    assert [r.region for r in rows] == REGIONS and isinstance(rows[0].n, int) and isinstance(rows[0].mean, decimal.Decimal), rows
    assert [d[0] for d in cur.description] == ["region", "n", "mean"], cur.description
with check("a replay is free"):
    before = budget()
    assert cur.execute(BY_REGION).fetchall() == rows and budget() == before and abs(before - 29.9) < 1e-9, before
with check("parameters"):
    n = cur.execute("SELECT count(*) AS n FROM visits WHERE region = ? AND day >= ? AND amount < ?", "East", datetime.date(2025, 1, 1),
                    decimal.Decimal("499.5")).fetchval()
    near(n, PEOPLE / 4)
with check("a number as parameter"):
    near(cur.execute("SELECT count(*) AS n FROM people WHERE age >= ?", 17).fetchval(), PEOPLE)
with check("the same statement with other parameters"):
    for age in (17, 40, 17):
        cur.execute("SELECT count(*) AS n FROM people WHERE age >= ?", age).fetchval()
with check("dates as keys"):
    months = cur.execute("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1").fetchall()
    assert len(months) == 12 and months[11].month.month == 12, months
with check("rows of people are refused"):
    before = budget()
    try:
        cur.execute("SELECT age FROM people").fetchall()
        raise AssertionError("rows of people")
    except pyodbc.Error as e:
        assert e.args[0] == "42501" and "ERROR" in e.args[1], e.args
    assert budget() == before
with check("an unknown column"):
    try:
        cur.execute("SELECT count(nothing) FROM people").fetchall()
        raise AssertionError("answered")
    except pyodbc.Error as e:
        assert e.args[0] in ("42703", "42S22"), e.args
with check("writing is refused"):
    try:
        cur.execute("INSERT INTO regions VALUES ('x')")
        raise AssertionError("written")
    except pyodbc.Error as e:
        assert e.args[0] == "25006", e.args
with check("a public table"):
    assert [r.name for r in cur.execute("SELECT name FROM regions ORDER BY name")] == REGIONS
with check("transactions"):
    conn.autocommit = False
    assert cur.execute(BY_REGION).fetchall() == rows
    conn.rollback()
    conn.autocommit = True
with check("an error in a transaction"):
    conn.autocommit = False
    try:
        cur.execute("SELECT age FROM people")
    except pyodbc.Error:
        pass
    conn.rollback()
    assert cur.execute("SELECT 1 AS one").fetchval() == 1
    conn.autocommit = True
with check("UseDeclareFetch"):
    other = connect("UseDeclareFetch=1;Fetch=2")
    other.autocommit = False
    assert [r.region for r in other.cursor().execute(BY_REGION)] == REGIONS
    assert other.cursor().execute("SELECT count(*) AS n FROM people WHERE age >= ?", 17).fetchval() > 0
    other.commit()
    other.close()
with check("prepared by the server"):
    other = connect("UseServerSidePrepare=1")
    c = other.cursor()
    for age in (17, 17, 17):
        near(c.execute("SELECT count(*) AS n FROM people WHERE age >= ?", age).fetchval(), PEOPLE)
    other.close()
with check("prepared by the client"):
    other = connect("UseServerSidePrepare=0")
    near(other.cursor().execute("SELECT count(*) AS n FROM visits WHERE region = ?", "West").fetchval(), PEOPLE / 4)
    other.close()
with check("settings of a connection"):
    other = connect("ConnSettings=SET noisegate.epsilon %3D 0.02")
    before = budget()
    other.cursor().execute("SELECT sum(age) AS s FROM people").fetchval()
    assert abs(before - budget() - 0.02) < 1e-9, (before, budget())
    other.close()
with check("a wrong token"):
    try:
        pyodbc.connect(f"Driver={{PostgreSQL Unicode}};Server={E['PGHOST']};Port={E['PGPORT']};Database=census;Uid=x;Pwd=x;SSLmode={MODE};"
                       f"pqopt={{sslrootcert={ROOT}}}")
        raise AssertionError("connected")
    except pyodbc.Error as e:
        assert "password authentication failed" in str(e), e
conn.close()
end()
