"""Centres and inertias of scikit-learn, which tests of clusterings want: clusters.py adult.csv penguins.csv optdigits_tra.csv optdigits_tes.csv

Columns are scaled to [-1, 1] by the bounds of the tests' policies. An inertia is the least of 20 starts. Centres are of rows whose
coordinates along the first principal axes are cut at two standard deviations, as a clustering cuts them. Scores are of groups around the
centres of score_test.go; scikit-learn has no simplified silhouette.

Made with scikit-learn 1.9.1 and NumPy 2.4.6."""
import csv
import json
import sys

import numpy
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score


def table(path, columns):
    rows = csv.DictReader(open(path))
    return numpy.array([[float(r[c]) for c in columns] for r in rows if all(r[c] for c in columns)])


def scaled(x, low, high):
    low, high = numpy.array(low, float), numpy.array(high, float)
    return numpy.clip((2 * x - low - high) / (high - low), -1, 1)


def clusters(x, k, axes):
    mean = x.mean(axis=0)
    values, vectors = numpy.linalg.eigh((x - mean).T @ (x - mean) / len(x))
    order = numpy.argsort(-values)[:axes]
    reach = 2 * numpy.sqrt(values[order])
    y = numpy.clip((x - mean) @ vectors[:, order], -reach, reach)
    m = KMeans(k, n_init=50, tol=0, max_iter=1000, random_state=0).fit(y)
    centres = mean + m.cluster_centers_ @ vectors[:, order].T
    return {"inertia": KMeans(k, n_init=20, random_state=0).fit(x).inertia_, "centres": sorted(centres.tolist())}


def scores(x, centres):
    distances = numpy.sqrt(((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))
    nearest = numpy.sort(distances, axis=1)
    return {"calinski": calinski_harabasz_score(x, distances.argmin(axis=1)), "silhouette": (1 - nearest[:, 0] / nearest[:, 1]).mean()}


bounds = {"Adult": ([17, 1, 1], [90, 16, 99]), "penguins": ([30, 13, 170, 2500], [60, 22, 235, 6500])}
centres = {"Adult": [[34.74, 8.413, 43.05], [23.87, 10.05, 33.8], [42.11, 13.26, 45.47], [55.26, 8.992, 39.13]],
           "penguins": [[38.3, 18.1, 188.1, 3540], [46.9, 18.7, 195.7, 4030], [47.5, 14.96, 217.2, 5090]]}
adult = scaled(table(sys.argv[1], ["age", "education_num", "hours_per_week"]), *bounds["Adult"])
penguins = scaled(table(sys.argv[2], ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]),
                  *bounds["penguins"])
pixels = [f"p{i:02}" for i in range(64)]
digits = numpy.concatenate([table(path, pixels) for path in sys.argv[3:5]])
blocks = digits.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
answer = {"penguins": clusters(penguins, 3, 3), "two kinds of penguins": clusters(penguins, 2, 3)}
for name, k, x in [("Adult", 4, adult), ("optdigits", 10, (digits - 8) / 8), ("optdigits blocks", 10, (blocks - 32) / 32)]:
    answer[name] = {"inertia": KMeans(k, n_init=20, random_state=0).fit(x).inertia_}
for name, x in [("Adult", adult), ("penguins", penguins)]:
    answer[name].update(scores(x, scaled(numpy.array(centres[name]), *bounds[name])))
json.dump(answer, sys.stdout, indent=1)
print()
