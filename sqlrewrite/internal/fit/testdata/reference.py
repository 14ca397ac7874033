"""Coefficients of scikit-learn, which TestFitWithoutNoise wants: reference.py adult.csv penguins.csv > reference.json

Made with scikit-learn 1.9.1 and NumPy 2.4.6."""
import csv
import json
import math
import sys

import numpy
from sklearn.linear_model import LinearRegression, LogisticRegression

ONE = {"male": ("sex", "Male"), "rich": ("income", ">50K"), "married": ("marital_status", "Married-civ-spouse")}
NAMES = {name: f"CASE WHEN {column} = '{value}' THEN 1 ELSE 0 END" for name, (column, value) in ONE.items()}


STATUS = "marital_status"


def number(row, name):
    if name in ONE:
        column, value = ONE[name]
        return float(row[column] == value)
    if name.startswith("ln(1 + "):
        return math.log1p(float(row[name[7:-1]]))
    if name.startswith(STATUS + "="):
        return float(row[STATUS] == name[len(STATUS) + 1:])
    return float(row[name])


def classify(rows, target, features):
    x = numpy.array([[number(r, f) for f in features] for r in rows])
    y = numpy.array([target(r) for r in rows])
    centre, scale = x.mean(axis=0), x.std(axis=0)
    m = LogisticRegression(C=numpy.inf, tol=1e-12, max_iter=10000).fit((x - centre) / scale, y)
    w = m.coef_[0] / scale
    return {"intercept": m.intercept_[0] - w @ centre, "coefficients": {NAMES.get(f, f): c for f, c in zip(features, w)}}


def fit(rows, target, features):
    x = numpy.array([[number(r, f) for f in features] for r in rows])
    y = numpy.array([number(r, target) for r in rows])
    m = LinearRegression().fit(x, y)
    return {"intercept": m.intercept_, "coefficients": {NAMES.get(f, f): c for f, c in zip(features, m.coef_)}}


adult = [r for r in csv.DictReader(open(sys.argv[1])) if int(r["person_id"]) <= 32561 and int(r["person_id"]) % 5]
# The columns of a one-hot feature add up to the intercept: without the first one, others are differences from that.
statuses = [f"{STATUS}={v}" for v in sorted({r[STATUS] for r in adult})[1:]]
penguins = [r for r in csv.DictReader(open(sys.argv[2])) if r["body_mass_g"]]
json.dump({
    "hours": fit(adult, "hours_per_week", ["age", "education_num", "male", "rich", "married"]),
    "hours of adults over 30": fit([r for r in adult if int(r["age"]) > 30], "hours_per_week", ["age", "education_num"]),
    "mass": fit(penguins, "body_mass_g", ["flipper_length_mm"]),
    "mass of two": fit(penguins, "body_mass_g", ["flipper_length_mm", "bill_length_mm"]),
    "heavy": classify(penguins, lambda r: float(r["body_mass_g"]) > 4000, ["flipper_length_mm", "bill_length_mm"]),
    "rich": classify(adult, lambda r: r["income"] == ">50K",
                     ["age", "education_num", "hours_per_week", "ln(1 + capital_gain)", "ln(1 + capital_loss)", "male", *statuses]),
}, sys.stdout, indent=1)
