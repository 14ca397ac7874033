import datetime
import logging
import os
import pathlib
import tempfile

from common import PEOPLE, REGIONS, ROOT, MODE, check, end, left, near

home = pathlib.Path(tempfile.mkdtemp())
(home / "superset_config.py").write_text(f"""
SECRET_KEY = "of no use to anybody: this server is gone with the test"
SQLALCHEMY_DATABASE_URI = "sqlite:///{home}/superset.db"
FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = {{"CACHE_TYPE": "NullCache"}}
""")
os.environ["SUPERSET_CONFIG_PATH"] = str(home / "superset_config.py")
logging.disable()
from superset.app import create_app  # noqa: E402  reads the environment

create_app().app_context().push()
from flask_appbuilder import Model  # noqa: E402  needs the application, as do all below
from superset import db  # noqa: E402
from superset.connectors.sqla.models import SqlaTable, SqlMetric  # noqa: E402
from superset.models.core import Database  # noqa: E402
from superset.sql.parse import Table  # noqa: E402

Model.metadata.create_all(db.engine)
census = Database(database_name="census", expose_in_sqllab=True)
census.set_sqlalchemy_uri(f"postgresql+psycopg2://{os.environ['PGUSER']}:{os.environ['PGPASSWORD']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}"
                          f"/census?sslmode={MODE}&sslrootcert={ROOT}")
db.session.add(census)
db.session.commit()
spec = census.db_engine_spec


def budget():
    return left(census.get_df("SHOW noisegate.budget").iloc[0, 0])


def dataset(name):
    table = SqlaTable(table_name=name, schema="public", database=census, database_id=census.id)
    db.session.add(table)
    db.session.commit()
    table.fetch_metadata()
    db.session.commit()
    return table


def chart(table, **query):
    """The rows of a chart, as Superset asks for them."""
    answer = table.query({"metrics": ["count"], "filter": [], "extras": {}, "is_timeseries": False, "row_limit": 1000, "orderby": [],
                          "from_dttm": None, "to_dttm": None, "granularity": None, "groupby": [], "columns": []} | query)
    assert answer.error_message is None, answer.error_message
    return answer.df


def refused(sql):
    try:
        census.get_df(sql)
    except Exception as e:
        return spec.extract_errors(e)[0].message
    raise AssertionError(f"answered: {sql}")


with check("test of the connection"):
    with census.get_sqla_engine() as engine:
        assert spec.get_dbapi_exception_mapping is not None and engine.dialect.do_ping(engine.raw_connection())
with check("schemas, tables, views"):
    assert "public" in census.get_all_schema_names() and census.get_all_catalog_names() == {"census"}
    tables = {t[0] for t in census.get_all_table_names_in_schema(catalog=None, schema="public")}
    assert tables == {"people", "visits", "regions"}, tables
    assert not census.get_all_view_names_in_schema(catalog=None, schema="public")
with check("columns, keys and indexes of a table"):
    people = Table("people", "public")
    assert len(census.get_columns(people)) == 14 and census.get_indexes(people) == [] and census.get_foreign_keys(people) == []
    assert not census.get_pk_constraint(people).get("constrained_columns") and "privacy unit" in census.get_table_comment(people)
with check("a dataset"):
    visits = dataset("visits")
    assert {c.column_name: c.is_dttm for c in visits.columns} == {"day": True, "region": False, "amount": False}, visits.columns
with check("a chart by region"):
    bars = chart(visits, columns=["region"], groupby=["region"], orderby=[("count", False)])
    assert sorted(bars.region) == REGIONS, bars
    for n in bars["count"]:
        near(n, PEOPLE / 4)
with check("a refresh is free"):
    before = budget()
    assert chart(visits, columns=["region"], groupby=["region"], orderby=[("count", False)]).equals(bars) and budget() == before
with check("a line by month"):
    months = chart(visits, granularity="day", is_timeseries=True, extras={"time_grain_sqla": "P1M"})
    assert len(months) == 12 and {type(d).__name__ for d in months["__timestamp"]} == {"Timestamp"}, months
with check("a time range and a filter"):
    spring = chart(visits, granularity="day", from_dttm=datetime.datetime(2025, 3, 1), to_dttm=datetime.datetime(2025, 6, 1),
                   filter=[{"col": "region", "op": "IN", "val": ["North", "South"]}])
    near(spring["count"][0], PEOPLE * 92 / 365 / 2)
with check("a metric"):
    visits.metrics.append(SqlMetric(metric_name="mean", expression="AVG(amount)"))
    db.session.commit()
    mean = chart(visits, metrics=["mean"])["mean"][0]
    assert 150 < float(mean) < 250, mean
with check("values of a filter are free"):
    before = budget()
    assert sorted(visits.values_for_column("region")) == REGIONS and budget() == before
with check("a public table is free"):
    before = budget()
    assert sorted(census.get_df("SELECT name FROM regions").name) == REGIONS and budget() == before
with check("the cost of a query"):
    before = budget()
    with census.get_raw_connection() as conn:
        cost = spec.estimate_statement_cost(census, "SELECT count(*) FROM people WHERE age > 40", conn.cursor())
    assert float(cost["Total cost"]) == 0.1 and budget() == before, cost
with check("the preview of a table is refused, readably"):
    before = budget()
    with census.get_sqla_engine() as engine:
        preview = census.select_star(Table("people", "public"), limit=100)
    text = refused(preview)
    assert "policy/not-aggregate" in text and budget() == before, (preview, text)
with check("the errors that Superset knows"):
    assert "people1" in refused("SELECT count(*) FROM people1") and 'agee' in refused("SELECT count(agee) FROM people")
with check("cancelling a query"):
    with census.get_raw_connection() as conn:
        cursor = conn.cursor()
        process = spec.get_cancel_query_id(cursor, None)
        with census.get_raw_connection() as other:
            assert spec.cancel_query(other.cursor(), None, process)
with check("nothing is written"):
    assert "read-only transaction" in refused("CREATE TABLE mine AS SELECT count(*) FROM people")
end()
