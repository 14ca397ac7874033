"""Qrlew: it rewrites SQL, which PostgreSQL runs with its own random()."""
import importlib.metadata

import pyqrlew
from pyqrlew import Dataset, Dialect
from sqlalchemy import create_engine

from common import Unsupported, main


def ask(q, _, dsn):
    if "delta" not in q:
        raise Unsupported("always needs a δ")
    if "total" in q:
        raise Unsupported("bounds a person's rows in each group, not in all together")
    engine = create_engine(dsn.replace("postgres://", "postgresql+psycopg2://").replace("postgresql://", "postgresql+psycopg2://"))
    table = q["data"]
    data = Dataset.from_database(table, engine, "public")
    if "column" in q:
        data = data.with_range("public", table, q["column"], *q["bounds"])
    if "keys" in q:
        low, high = min(map(int, q["keys"])), max(map(int, q["keys"]))
        data = data.with_range("public", table, q["key"], low, high)
        data = data.with_possible_values("public", table, q["key"], q["keys"])
    value = {"count": "count(*)", "sum": "sum({})", "avg": "avg({})"}[q["agg"]].format(q.get("column"))
    sql = f"SELECT {value} AS v FROM public.{table}"
    if "key" in q:
        sql = f"SELECT {q['key']} AS k, {value} AS v FROM public.{table} GROUP BY {q['key']}"
    relation = pyqrlew.Relation.from_query(sql, data)
    private = relation.rewrite_with_differential_privacy(
        data, [(table, [], q.get("unit", "person_id"))], {"epsilon": q["epsilon"], "delta": q["delta"]},
        max_multiplicity=float(q["rows"]), max_multiplicity_share=1.0, max_privacy_unit_groups=q["groups"])
    query = private.relation().to_query(Dialect.PostgreSql)

    def draw():
        with engine.connect() as c:
            rows = c.exec_driver_sql(query).all()
        return {str(r[0]): r[1] for r in rows} if "key" in q else {"": rows[0][0]}
    return draw


main("Qrlew " + importlib.metadata.version("pyqrlew"), ask)
