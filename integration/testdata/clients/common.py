"""What the scripts of Python share: one line for each thing that is as it should be, or is not."""
import os
import sys
import traceback

ROOT, MODE = os.environ["PGSSLROOTCERT"], os.environ["PGSSLMODE"]
PEOPLE = 40000
BY_REGION = "SELECT region, count(*) AS n, avg(amount) AS mean FROM visits GROUP BY region ORDER BY region"
REGIONS = ["East", "North", "South", "West"]
failures = 0


def ok(name, passed, detail=""):
    """Prints whether something holds, and goes on."""
    global failures
    if passed:
        print("ok", name)
    else:
        failures += 1
        print("FAIL", name, repr(detail))


class check:
    """A block that is one thing: it fails with what it raises."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and not issubclass(kind, Exception):
            return False
        place = traceback.extract_tb(trace)[0].lineno if error else 0
        ok(self.name, error is None, f"line {place}: {kind and kind.__name__}: {error}")
        return True


def near(n, expected, off=4000):
    """Whether a count is right: the noise has scale 10 for people, 150 for visits and at most 450 for those beside a mean."""
    assert abs(float(n) - expected) <= off, (n, expected)


def left(text):
    """The ε that SHOW noisegate.budget says is left."""
    assert text.startswith("ε ") and " left" in text, text
    return float(text.split()[1])


def end():
    sys.exit(failures > 0)
