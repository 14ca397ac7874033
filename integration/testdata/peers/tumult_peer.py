"""Tumult Analytics: its sessions, on Spark in this process."""
import importlib.metadata
import os
import sys

from pyspark.sql import SparkSession
from tmlt.analytics import (AddOneRow, AddRowsWithID, ApproxDPBudget, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, MaxRowsPerID,
                            PureDPBudget, QueryBuilder, Session)

from common import Unsupported, main

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).config("spark.ui.enabled", "false")
         .config("spark.driver.memory", "2g").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")


def ask(q, file, _):
    frame = spark.read.csv(file, header=True, inferSchema=True).cache()
    if "key" in q:
        frame = frame.withColumn(q["key"], frame[q["key"]].cast("string"))
    columns = [q[name] for name in ("unit", "key", "column") if name in q]
    frame = frame.select(*columns).cache() if columns else frame
    delta = q.get("delta", 0)
    approximate = bool(delta)
    cost = ApproxDPBudget(q["epsilon"], delta) if approximate else PureDPBudget(q["epsilon"])
    many = ApproxDPBudget(float("inf"), 1) if approximate else PureDPBudget(float("inf"))
    change = AddRowsWithID(id_column=q["unit"]) if "unit" in q else AddOneRow()
    session = Session.from_dataframe(many, "t", frame, protected_change=change)
    query = QueryBuilder("t")
    if "unit" in q:
        if "key" in q and "total" not in q:
            query = query.enforce(MaxGroupsPerID(q["key"], q["groups"])).enforce(MaxRowsPerGroupPerID(q["key"], q["rows"]))
        elif q["agg"] != "distinct":
            query = query.enforce(MaxRowsPerID(q.get("total", q["rows"])))
    if "key" in q and "keys" not in q:
        raise Unsupported("keys and counts of them are two queries, each at a share of the price")
    if "key" in q:
        query = query.groupby(KeySet.from_dict({q["key"]: q["keys"]}))
    bounds = q.get("bounds")
    query = {"count": lambda: query.count(name="v"), "distinct": lambda: query.count_distinct(columns=[q["unit"]], name="v"),
             "sum": lambda: query.sum(q["column"], *bounds, name="v"), "avg": lambda: query.average(q["column"], *bounds, name="v"),
             "var": lambda: query.variance(q["column"], *bounds, name="v"),
             "median": lambda: query.median(q["column"], *bounds, name="v")}[q["agg"]]()

    def draw():
        rows = session.evaluate(query, privacy_budget=cost).collect()
        return {r[q["key"]]: r["v"] for r in rows} if "key" in q else {"": rows[0]["v"]}
    return draw


main("Tumult Analytics " + importlib.metadata.version("tmlt.analytics"), ask)
