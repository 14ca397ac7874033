import asyncio
import datetime
import decimal
import io
import ssl

import asyncpg
from common import BY_REGION, MODE, PEOPLE, REGIONS, ROOT, check, end, left, near


async def main():
    tls = ssl.create_default_context(cafile=ROOT) if MODE == "verify-full" else False
    notices = []
    conn = await asyncpg.connect(ssl=tls, server_settings={"noisegate.epsilon": "0.1"})
    conn.add_log_listener(lambda _, message: notices.append(message))

    async def budget():
        return left(await conn.fetchval("SHOW noisegate.budget"))

    with check("the connection"):
        assert conn.get_server_version().major >= 14 and conn.get_settings().application_name == ""
    with check("rows and types"):
        rows = await conn.fetch(BY_REGION)
        assert [r["region"] for r in rows] == REGIONS and isinstance(rows[0]["n"], int) and isinstance(rows[0]["mean"], decimal.Decimal)
    with check("the notice of a charge"):
        await asyncio.sleep(0)
        assert len(notices) == 1 and "spent ε 0.1; ε 29.9 left" in notices[0].message, notices
    with check("a replay is free"):
        before = await budget()
        assert await conn.fetch(BY_REGION) == rows and await budget() == before
        await asyncio.sleep(0)
        assert len(notices) == 2 and "a replay of " in notices[1].message, notices
        assert "spent nothing; ε 29.9 left" in notices[1].message, notices
    with check("a price of the policy"):
        other = await asyncpg.connect(ssl=tls)
        assert await other.fetch(BY_REGION) == rows
        await other.close()
    with check("typed parameters"):
        n = await conn.fetchval("SELECT count(*) AS n FROM visits WHERE region = $1 AND day >= $2 AND amount < $3", "East",
                                datetime.date(2025, 1, 1), decimal.Decimal("499.5"))
        near(n, PEOPLE / 4)
    with check("the types of parameters"):
        s = await conn.prepare("SELECT count(*) AS n FROM visits WHERE region = $1 AND day >= $2 AND amount < $3")
        assert [p.name for p in s.get_parameters()] == ["text", "date", "numeric"], s.get_parameters()
        assert [(a.name, a.type.name) for a in s.get_attributes()] == [("n", "int8")], s.get_attributes()
    with check("a parameter is its constant"):
        one = await conn.fetchval("SELECT count(*) AS n FROM people WHERE age >= 40")
        before = await budget()
        assert await conn.fetchval("SELECT count(*) AS n FROM people WHERE age >= $1", 40) == one and await budget() == before
    with check("BETWEEN"):
        near(await conn.fetchval("SELECT count(*) AS n FROM people WHERE age BETWEEN $1 AND $2", 17, 90), PEOPLE)
    with check("an array as parameter is its constants"):
        two = await conn.fetchval("SELECT count(*) AS n FROM visits WHERE region IN ('East', 'West')")
        near(two, PEOPLE / 2)
        before = await budget()
        for array in ("$1", "$1::text[]"):
            assert await conn.fetchval(f"SELECT count(*) AS n FROM visits WHERE region = ANY({array})", ["East", "West"]) == two, array
        assert await budget() == before
    with check("dates as keys"):
        months = await conn.fetch("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1")
        assert len(months) == 12 and months[11]["month"].month == 12
    with check("constants"):
        row = await conn.fetchrow("SELECT true AS yes, NULL::bool AS no, 1.5::float8 AS x, date '2025-02-03' AS d, 'ü' AS t, 12.50::numeric AS m")
        assert tuple(row) == (True, None, 1.5, datetime.date(2025, 2, 3), "ü", decimal.Decimal("12.50")), row
    with check("rows of people are refused"):
        before = await budget()
        try:
            await conn.fetch("SELECT age FROM people")
            raise AssertionError("rows of people")
        except asyncpg.InsufficientPrivilegeError as e:
            assert e.sqlstate == "42501" and e.detail == "policy/not-aggregate" and e.hint and int(e.position) > 0
        assert await budget() == before
    with check("a cursor"):
        async with conn.transaction(readonly=True, isolation="repeatable_read"):
            got = [r async for r in conn.cursor(BY_REGION, prefetch=2)]
            assert got == rows
    with check("a cursor in pieces"):
        async with conn.transaction():
            c = await conn.cursor(BY_REGION)
            assert await c.fetchrow() == rows[0]
            await c.forward(1)
            assert await c.fetch(5) == rows[2:]
    with check("nested transactions"):
        async with conn.transaction():
            try:
                async with conn.transaction():
                    await conn.fetch("SELECT age FROM people")
            except asyncpg.InsufficientPrivilegeError:
                pass
            assert await conn.fetchval("SELECT 1") == 1
    with check("COPY of a query"):
        out = io.BytesIO()
        await conn.copy_from_query("SELECT count(*) AS n FROM people WHERE age >= $1", 40, output=out)
        assert out.getvalue().decode().strip() == str(one), out.getvalue()
    with check("COPY of a query as binary"):
        out = io.BytesIO()
        await conn.copy_from_query(BY_REGION, output=out, format="binary")
        assert out.getvalue().startswith(b"PGCOPY\n\xff\r\n\0")
    with check("COPY of a table is refused"):
        try:
            await conn.copy_from_table("people", output=io.BytesIO())
            raise AssertionError("copied")
        except asyncpg.FeatureNotSupportedError:
            pass
    with check("several statements"):
        assert await conn.execute("SELECT 1; SELECT 2") == "SELECT 1"
    with check("a type of the catalog is looked up"):
        kinds = await conn.fetch("SELECT typname FROM pg_type WHERE oid = ANY($1::oid[]) ORDER BY 1", [20, 25])
        assert [k["typname"] for k in kinds] == ["int8", "text"], kinds
    with check("a codec of our own"):
        await conn.set_type_codec("numeric", encoder=str, decoder=float, schema="pg_catalog", format="text")
        assert isinstance(await conn.fetchval("SELECT 1.5"), float)
        await conn.reset_type_codec("numeric", schema="pg_catalog")
    with check("names of tables"):
        names = await conn.fetch("SELECT table_name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1", "public")
        assert [n["table_name"] for n in names] == ["people", "regions", "visits"], names
    with check("a pool"):
        async with asyncpg.create_pool(ssl=tls, min_size=2, max_size=3) as pool:
            answers = await asyncio.gather(*(pool.fetchval("SELECT count(*) AS n FROM people WHERE age >= $1", 40) for _ in range(6)))
        assert answers == [one] * 6, answers
    with check("reset of a session"):
        await conn.reset()
        assert await conn.fetchval("SELECT 1") == 1
    with check("a time-out of the client"):
        try:
            await conn.fetchval("SELECT count(*) FROM people p WHERE age >= $1", 41, timeout=1e-6)
        except asyncio.TimeoutError:
            pass
        assert await conn.fetchval("SELECT 1") == 1
    await conn.close()


asyncio.run(main())
end()
