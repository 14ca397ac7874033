import json
import logging
import os
import pathlib
import tempfile

from common import PEOPLE, REGIONS, check, end, left, near

os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
from dbt.cli.main import dbtRunner  # noqa: E402  reads the environment
import psycopg2  # noqa: E402

FILES = {
    "dbt_project.yml": "{name: census, version: '1.0', profile: census, models: {census: {+materialized: ephemeral}}}",
    "profiles.yml": """
census:
  target: noisegate
  outputs:
    noisegate:
      {type: postgres, host: "{{ env_var('PGHOST') }}", port: "{{ env_var('PGPORT') | as_number }}", dbname: "{{ env_var('PGDATABASE') }}",
       user: "{{ env_var('PGUSER') }}", password: "{{ env_var('PGPASSWORD') }}", sslmode: "{{ env_var('PGSSLMODE') }}",
       sslrootcert: "{{ env_var('PGSSLROOTCERT') }}", schema: public, threads: 2}
""",
    "models/sources.yml": """
sources:
  - name: census
    database: census
    schema: public
    tables:
      - {name: people}
      - {name: visits}
      - name: regions
        columns: [{name: name, data_tests: [not_null, unique]}]
""",
    "models/by_region.sql": "select region, count(*) as n from {{ source('census', 'visits') }} group by region",
    "models/shares.sql": "select region, n, n * 1.0 / sum(n) over () as share from {{ ref('by_region') }}",
    "models/stored.sql": "{{ config(materialized='table') }} select region, n from {{ ref('by_region') }}",
    "models/raw.sql": "select age from {{ source('census', 'people') }}",
}
home = pathlib.Path(tempfile.mkdtemp())
for name, text in FILES.items():
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_text(text)
logging.disable()
runner = dbtRunner()


def run(*args):
    """What dbt makes of a command: whether it went well, and its results."""
    return runner.invoke([*args, "--project-dir", str(home), "--profiles-dir", str(home), "--log-path", str(home), "--quiet", "--log-level", "none"])


def shown(*args):
    done = run("show", "--limit", "10", *args)
    if done.exception:
        raise done.exception
    return [row.dict() for row in done.result.results[0].agate_table.rows]


def spent():
    with psycopg2.connect("") as conn, conn.cursor() as cursor:
        cursor.execute("SHOW noisegate.budget")
        return -left(cursor.fetchone()[0])


def message(done):
    return done.result.results[0].message if done.result else str(done.exception)


with check("debug"):
    assert run("debug").success
with check("list"):
    assert set(run("list", "--resource-type", "source").result) == {f"source:census.census.{t}" for t in ("people", "visits", "regions")}
with check("show of a model over a source"):
    rows = shown("--select", "by_region")
    assert sorted(r["region"] for r in rows) == REGIONS, rows
    for r in rows:
        near(r["n"], PEOPLE / 4)
with check("show again is free"):
    before = spent()
    assert shown("--select", "by_region") == rows and spent() == before
with check("show of a model over a model asks nothing new"):
    before, shares = spent(), shown("--select", "shares")
    assert {r["region"]: r["n"] for r in shares} == {r["region"]: r["n"] for r in rows} and spent() == before, shares
    assert abs(sum(r["share"] for r in shares) - 1) < 1e-9, shares
with check("show of a query in line"):
    assert sorted(r["name"] for r in shown("--inline", "select name from {{ source('census', 'regions') }}")) == REGIONS
with check("compile"):
    assert run("compile").success
with check("tests of a public source are free"):
    before, done = spent(), run("test")
    assert [r.status for r in done.result.results] == ["pass", "pass"] and spent() == before, done.result
with check("docs"):
    assert run("docs", "generate").success
    sources = json.loads((home / "target/catalog.json").read_text())["sources"]
    assert sources["source.census.census.people"]["columns"]["age"]["type"] == "smallint", sources
    assert "privacy unit" in sources["source.census.census.people"]["metadata"]["comment"], sources
with check("rows of people are refused, readably"):
    before, done = spent(), run("show", "--select", "raw")
    assert not done.success and "policy/not-aggregate" in message(done) and spent() == before, message(done)
with check("a table is not made"):
    before, done = spent(), run("run", "--select", "stored")
    assert not done.success and "in a read-only transaction" in message(done) and spent() == before, message(done)
end()
