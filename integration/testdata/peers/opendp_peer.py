"""OpenDP: its Polars interface, one measurement a question."""
import importlib.metadata
import os
import random

os.environ["POLARS_MAX_THREADS"] = "1"

import opendp.prelude as dp
import polars as pl

from common import Unsupported, main

dp.enable_features("contrib")
MOST = 100_000  # more rows than any table has; public


def ask(q, file, _):
    columns = [q[name] for name in ("unit", "key", "column") if name in q]
    frame = pl.read_csv(file, schema_overrides={q["key"]: pl.String} if "key" in q else {}, columns=columns or [0])
    if "keys" in q:
        # truncate_num_groups keeps the first groups in the order of keys: its default (sample) names one field twice in
        # this version of Polars. Keys in a random order give what the default is meant to.
        names = dict(zip(q["keys"], random.sample(range(len(q["keys"])), len(q["keys"]))))
        frame = frame.filter(pl.col(q["key"]).is_in(q["keys"])).with_columns(
            pl.col(q["key"]).replace_strict(names, return_dtype=pl.Int64))
    data = frame.lazy()
    centre = 0
    if "column" in q:
        low, high = q["bounds"]
        if q["agg"] == "var":  # of sums around the middle of the bounds; there is no variance of its own
            centre = (low + high) // 2
            data = data.with_columns(x=pl.col(q["column"]) - centre, xx=(pl.col(q["column"]) - centre) ** 2)
    unit = {"identifier": pl.col(q["unit"])} if "unit" in q else {}
    key = [q["key"]] if "key" in q else []
    loss = {"epsilon": q["epsilon"]} | ({"delta": q["delta"]} if "delta" in q else {})
    if "delta" in q and "keys" in q:  # many counts: Gaussian noise, at the ρ that these ε and δ allow
        loss = {"rho": rho(q["epsilon"], q["delta"])}
    margins = [dp.polars.Margin(by=by, max_length=MOST) for by in ([], key)[:1 + len(key)]]
    context = dp.Context.compositor(data=data, privacy_unit=dp.unit_of(contributions=1, **unit),
                                    privacy_loss=dp.loss_of(**loss), split_evenly_over=1, margins=margins)
    query = context.query()
    if "unit" in q:
        query = bounded(q, query)
    if key:
        query = query.group_by(*key).agg(*outputs(q, centre))
        if "keys" in q:
            query = query.with_keys(pl.LazyFrame({q["key"]: list(names.values())}))
    else:
        query = query.select(*outputs(q, centre))
    measurement = query.resolve()

    def draw():
        frame = measurement(data).collect()
        if q["agg"] == "var":
            n, x, xx = frame.select("n", "x", "xx").row(0)
            return {"": xx / n - (x / n) ** 2}
        if not key:
            return {"": frame.item()}
        answer = dict(frame.select(q["key"], "v").iter_rows())
        return {k: answer[n] for k, n in names.items()} if "keys" in q else answer
    return draw


def bounded(q, query):
    """At most the rows and groups of the question for each person: person by person where that keeps more."""
    if q["agg"] == "distinct":
        return query.truncate_per_group(1)
    if q["agg"] == "sum" and "key" not in q:  # a person's sum is clamped, and no row is left out
        low, high = q["bounds"]
        return query.group_by(q["unit"]).agg(pl.col(q["column"]).clip(low, high).sum())
    if "total" in q:
        return query.truncate_per_group(q["total"])
    if "key" not in q:
        return query.truncate_per_group(q["rows"])
    return query.truncate_per_group(q["rows"], by=[q["key"]]).truncate_num_groups(q["groups"], by=[q["key"]], keep="first")


def outputs(q, centre):
    if q["agg"] in ("count", "distinct"):
        return [dp.len(signed=True).alias("v")]
    low, high = q["bounds"]
    if q["agg"] == "var":
        widest = max(high - centre, centre - low)
        return [dp.len(signed=True).alias("n"), pl.col("x").dp.sum((low - centre, high - centre)), pl.col("xx").dp.sum((0, widest ** 2))]
    column = pl.col(q["column"])
    if q["agg"] == "sum":
        if "unit" in q and "key" not in q:
            low, high = low * q["rows"], high * q["rows"]
        return [column.dp.sum((low, high)).alias("v")]
    if q["agg"] == "avg":
        return [column.dp.mean((low, high)).alias("v")]
    if q["agg"] == "median":
        return [column.dp.median(list(range(low, high + 1))).alias("v")]
    raise Unsupported("no " + q["agg"])


def rho(epsilon, delta):
    """The largest ρ whose conversion is within (ε, δ), by OpenDP's own conversion."""
    space = (dp.atom_domain(T=int), dp.absolute_distance(T=int))
    def allowed(r):
        scale = (1 / (2 * r)) ** 0.5
        curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1)
        return curve.epsilon(delta) <= epsilon
    return dp.binary_search(allowed, (1e-9, 10.0))


main("OpenDP " + importlib.metadata.version("opendp"), ask)
