"""PipelineDP (Google's C++ library below it, through PyDP), with its local backend."""
import csv
import importlib.metadata
import logging

import pipeline_dp as p

from common import Unsupported, main

logging.disable(logging.WARNING)


def ask(q, file, _):
    if "total" in q:
        raise Unsupported("a bound on a person's rows in all groups together is for sums without public keys only")
    with open(file) as f:
        rows = [(r.get(q.get("unit"), i), r.get(q.get("key"), ""), int(r[q["column"]]) if "column" in q else 0)
                for i, r in enumerate(csv.DictReader(f))]
    metrics = {"count": p.Metrics.COUNT, "distinct": p.Metrics.PRIVACY_ID_COUNT, "sum": p.Metrics.SUM, "avg": p.Metrics.MEAN,
               "var": p.Metrics.VARIANCE, "median": p.Metrics.PERCENTILE(50)}
    values = {}
    if q["agg"] == "sum":  # a person's sum is clamped, and no row is left out
        values = {"min_sum_per_partition": q["bounds"][0] * q["rows"], "max_sum_per_partition": q["bounds"][1] * q["rows"]}
        if q["rows"] == 1:
            values = {"min_value": q["bounds"][0], "max_value": q["bounds"][1]}
    elif "column" in q:
        values = {"min_value": q["bounds"][0], "max_value": q["bounds"][1]}
    private = "key" in q and "keys" not in q
    public = None if private else q.get("keys", [""])
    gaussian = "delta" in q and len(public or []) > 1
    params = p.AggregateParams(
        metrics=[metrics[q["agg"]]], noise_kind=p.NoiseKind.GAUSSIAN if gaussian else p.NoiseKind.LAPLACE,
        max_partitions_contributed=q["groups"], max_contributions_per_partition=q["rows"],
        post_aggregation_thresholding=False, **values)
    extract = p.DataExtractors(privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1], value_extractor=lambda r: r[2])

    def draw():
        budget = p.NaiveBudgetAccountant(total_epsilon=q["epsilon"], total_delta=q.get("delta", 0) if gaussian or private else 0)
        result = p.DPEngine(budget, p.LocalBackend()).aggregate(rows, params, extract, public_partitions=public)
        budget.compute_budgets()
        return {key: m[0] for key, m in result}
    return draw


main("PipelineDP " + importlib.metadata.version("pipeline-dp"), ask)
