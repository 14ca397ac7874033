"""SmartNoise SQL over PostgreSQL, at the ε for which it says that the whole query costs the question's."""
import importlib.metadata
import warnings

import psycopg2
import snsql
from snsql import Privacy

from common import Unsupported, main

warnings.filterwarnings("ignore")


def ask(q, _, dsn):
    if q["agg"] == "median":
        raise Unsupported("no quantiles")
    if q["data"] == "rentals":
        raise Unsupported("without thresholds it shows the groups that have rows: a month without rentals is told")
    table = {"row_privacy": "unit" not in q, "max_ids": q.get("total", q["rows"]), "sample_max_ids": "unit" in q, "clamp_counts": False,
             "censor_dims": "key" in q and "keys" not in q, "rows": 100_000}
    if "unit" in q:
        table[q["unit"]] = {"type": "int", "private_id": True}
    else:
        table["person_id"] = {"type": "int"}  # an empty list of columns gives an empty answer
    if "key" in q:
        if "keys" in q and q["groups"] > 1 and "total" not in q:
            raise Unsupported("bounds a person's rows in all groups together, not in each")
        table[q["key"]] = {"type": "string"}
    if "column" in q:
        table[q["column"]] = {"type": "int", "lower": q["bounds"][0], "upper": q["bounds"][1]}
    meta = {"": {"public": {q["data"]: table}}}
    value = {"count": "COUNT(*)", "distinct": f"COUNT(DISTINCT {q.get('unit')})", "sum": "SUM({})", "avg": "AVG({})",
             "var": "VAR({})"}[q["agg"]].format(q.get("column"))
    text = f"SELECT {value} AS v FROM public.{q['data']}"
    if "key" in q:
        text = f"SELECT {q['key']}, {value} AS v FROM public.{q['data']} GROUP BY {q['key']}"
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    delta = q.get("delta", 0)

    def reader(epsilon):
        return snsql.from_connection(connection, engine="postgres", privacy=Privacy(epsilon=epsilon, delta=delta), metadata=meta)

    private = reader(q["epsilon"])
    cost, _ = private.get_privacy_cost(text)
    if cost > q["epsilon"] * (1 + 1e-9):  # it charges each column: their sum is the price of the query
        private = reader(q["epsilon"] ** 2 / cost)
        cost, _ = private.get_privacy_cost(text)
    assert abs(cost / q["epsilon"] - 1) < 1e-6, cost

    def draw():
        rows = private.execute(text)[1:]
        if "key" in q:
            return {k: v for k, v in rows if k is not None and ("keys" not in q or str(k) in q["keys"])}
        return {"": rows[0][0]}
    return draw


main("SmartNoise SQL " + importlib.metadata.version("smartnoise-sql"), ask)
