"""Writes arrays.zip: .npy files as NumPy itself writes them, for TestArraysOfNumPy. Run with NumPy 1.24: /usr/bin/python3 make.py

counts/   the votes of import_test.go, [[3, 0], [1, 2]], as every numeric type, in both byte orders, both memory orders, three versions
student/  probabilities [[0.875, 0.125], [0.25, 0.75]]; shortest32 has [[0.9, 0.1], [1e-33, 1]] in 32 bits
refused/  what is no plain array of real numbers of up to 8 bytes
"""

import io
import warnings
import zipfile

import numpy as np

warnings.simplefilter("ignore")  # NumPy warns of versions 2 and 3, which old readers lack
votes, said = [[3, 0], [1, 2]], [[0.875, 0.125], [0.25, 0.75]]
integers = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
floats = ["f2", "f4", "f8"]


def array(values, kind, order="C", version=(1, 0), pickled=False):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.array(values, dtype=kind, order=order), version=version, allow_pickle=pickled)
    return out.getvalue()


files = {}
for kind in integers + floats:
    for ends in "<>":
        for order in "CF":
            files[f"counts/{kind}{'le' if ends == '<' else 'be'}{order}.npy"] = array(votes, ends + kind, order)
for kind in floats:
    for ends in "<>":
        for order in "CF":
            files[f"student/{kind}{'le' if ends == '<' else 'be'}{order}.npy"] = array(said, ends + kind, order)
files["student/shortest32.npy"] = array([[0.9, 0.1], [1e-33, 1]], "<f4")
for version in (1, 2, 3):
    files[f"counts/version{version}.npy"] = array(votes, "<i8", version=(version, 0))
plain = io.BytesIO()
np.save(plain, np.array(votes))
files["counts/save.npy"] = plain.getvalue()
view = io.BytesIO()
np.save(view, np.array([[3, 9, 0, 9], [1, 9, 2, 9]])[:, ::2])  # neither C nor Fortran order in memory
files["counts/strided.npy"] = view.getvalue()
for name, values, kind in [
    ("pickled", votes, object), ("complex64", votes, "<c8"), ("complex128", votes, "<c16"), ("longdouble", votes, np.longdouble),
    ("text", [["3", "0"], ["1", "2"]], "<U1"), ("bytes", [["3", "0"], ["1", "2"]], "S1"), ("void", [[b"3", b"0"], [b"1", b"2"]], "V1"),
    ("datetime", votes, "<M8[s]"), ("timedelta", votes, "<m8[s]"), ("vector", [3, 0, 1, 2], "<i8"), ("scalar", 3, "<i8"),
    ("record", [[(3, 0), (1, 2)]], [("a", "<i4"), ("b", "<i4")]), ("subarray", [((3, 0),), ((1, 2),)], [("a", "<i4", (2,))]),
    ("unicode_record", [[(3,), (1,)]], [("\u00e4", "<i4")]), ("empty", np.zeros((0, 2)), "<i8"), ("fraction", [[2.5, 0.5], [1, 2]], "<f8"),
    ("nan", [[np.nan, 0], [1, 2]], "<f4"), ("infinite", [[np.inf, 0], [1, 2]], "<f2"), ("negative", [[4, -1], [1, 2]], "<i1"),
    ("beyond", [[2**64 - 1, 0], [1, 2]], "<u8"), ("minus_infinite", [[-np.inf, 0], [1, 2]], ">f8"),
]:
    version = (3, 0) if name == "unicode_record" else (1, 0)
    files[f"refused/{name}.npy"] = array(values, kind, version=version, pickled=name == "pickled")

with zipfile.ZipFile("arrays.zip", "w", zipfile.ZIP_DEFLATED) as out:
    for name in sorted(files):
        out.writestr(zipfile.ZipInfo(name), files[name])
