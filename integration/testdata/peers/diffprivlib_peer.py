"""diffprivlib: its tools for arrays, in which one row is one person."""
import csv
import importlib.metadata
import warnings

import numpy as np
from diffprivlib import tools

from common import Unsupported, main

warnings.filterwarnings("ignore")


def ask(q, file, _):
    if "unit" in q:
        raise Unsupported("one row is one person")
    if q["agg"] in ("count", "avg", "var") and "key" not in q:
        raise Unsupported("takes the number of rows as public: another guarantee")
    if "key" in q and "keys" not in q:
        raise Unsupported("no private keys")
    if "key" in q and q["agg"] != "count":
        raise Unsupported("no groups but in histograms")
    with open(file) as f:
        rows = list(csv.DictReader(f))
    if "key" in q:
        index = {k: i for i, k in enumerate(q["keys"])}
        places = np.array([index[r[q["key"]]] for r in rows])

        def draw():
            counts, _ = tools.histogram(places, epsilon=q["epsilon"], bins=len(index), range=(-0.5, len(index) - 0.5))
            return dict(zip(q["keys"], counts))
        return draw
    values = np.array([float(r[q["column"]]) for r in rows])
    low, high = q["bounds"]
    if q["agg"] == "sum":  # from 0: what adding or removing a person changes, not replacing one
        return lambda: {"": tools.sum(values, epsilon=q["epsilon"], bounds=(min(low, 0), max(high, 0)))}
    return lambda: {"": tools.median(values, epsilon=q["epsilon"], bounds=(low, high))}


main("diffprivlib " + importlib.metadata.version("diffprivlib"), ask)
