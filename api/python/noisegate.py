"""Noisegate from Python: questions with prices, answers with intervals, plots with error bars.

One file: copy it beside your notebook. It needs requests; frames need pandas, plots Matplotlib too.

    import noisegate
    ng = noisegate.Client()                      # NOISEGATE_URL and NOISEGATE_TOKEN
    n = ng.query("SELECT region, count(*) AS n FROM visits GROUP BY 1", epsilon="0.1")
    n.frame()                                    # region, n, n_low, n_high
    n.plot()

An answer that was paid for is given again, free, as often as it is asked for: run your cells again.
"""

import argparse
import decimal
import html
import os
import shlex
import time
import uuid

import requests

__all__ = ["Client", "Answer", "Refused"]


class Refused(Exception):
    """A problem that the gateway reports. Nothing is spent, but where the code is data/unavailable or internal: then the
    question may have been charged before it failed, and asking again charges again."""

    def __init__(self, status, problem):
        self.status = status
        self.problem = problem
        self.code = problem.get("code", "http/%d" % status)
        said = ["%s: %s" % (self.code, problem.get("detail") or problem.get("title") or "")]
        said += ["%s: %s" % (name, problem[name]) for name in ("hint", "suggestion", "differs") if problem.get(name)]
        super().__init__("\n".join(said))


class _Bearer(requests.auth.AuthBase):
    """A token. As the session's own authentication, no entry of a ~/.netrc takes its place."""

    def __init__(self, token):
        self._token = token

    def __call__(self, request):
        request.headers["Authorization"] = "Bearer " + self._token
        return request


class Client:
    """A gateway, as one caller sees it. dataset is the one that questions are about unless they name another."""

    def __init__(self, url=None, token=None, dataset=None, timeout=600):
        self.url = (url or os.environ.get("NOISEGATE_URL") or "http://127.0.0.1:8080").rstrip("/")
        self.dataset = dataset
        self.timeout = timeout
        self._session = requests.Session()
        self._session.auth = _Bearer(token or os.environ.get("NOISEGATE_TOKEN") or "")

    def __repr__(self):
        return "noisegate.Client(%r, dataset=%r)" % (self.url, self.dataset)

    def query(self, sql, *, dataset=None, params=None, key=None, **settings):
        """Ask, pay, and get an Answer. Settings are those of POST /v1/query: epsilon, rho, max_error, delta, confidence,
        mechanism, ... Numbers may be strings, decimals or floats; at_most={"epsilon": 0.1, "delta": 1e-9} is the most that
        may be charged. A request whose connection breaks is sent again under
        its key, and waits for the first one if that still runs: it is answered once and charged once. With wait=20 no request
        takes longer than 20 s: the client comes back for the answer until there is one."""
        body = self._body(sql, dataset, params, settings)
        said = self._call("POST", "/v1/query", json=body, headers={"Idempotency-Key": key or str(uuid.uuid4())}, again=True)
        while "job_id" in said:
            said = self._call("GET", "/v1/query/" + said["job_id"], params={"wait": 20}, again=True)
        return Answer(said)

    def estimate(self, sql, *, dataset=None, params=None, **settings):
        """Price and expected error of a question, as a dict. Free."""
        return self._call("POST", "/v1/query/estimate", json=self._body(sql, dataset, params, settings), again=True)

    def datasets(self):
        """What may be asked about: a list of dicts."""
        return self._call("GET", "/v1/datasets", again=True)["datasets"]

    def budget(self, dataset=None):
        """What is left: a list of dicts, of one dataset or of all."""
        name = dataset or self.dataset
        return self._call("GET", "/v1/budget", params={"dataset": name} if name else None, again=True)["budgets"]

    def releases(self):
        """Everything that was bought, newest first: dicts."""
        cursor = None
        while True:
            page = self._call("GET", "/v1/releases", params={"cursor": cursor} if cursor else None, again=True)
            yield from page["releases"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _body(self, sql, dataset, params, settings):
        body = {"sql": sql, "dataset": dataset or self.dataset}
        if not body["dataset"]:
            known = self.datasets()
            if len(known) != 1:
                raise ValueError("name a dataset: %s" % ", ".join(d["name"] for d in known))
            body["dataset"] = self.dataset = known[0]["name"]
        if params is not None:
            body["params"] = list(params)
        exact = ("epsilon", "rho", "delta")
        for name, value in settings.items():
            if value is None:
                continue
            if name in exact:
                value = _exact(value)
            elif name in ("max_error", "weights", "at_most"):
                value = {output: _exact(bound) for output, bound in value.items()}
            body[name] = value
        return body

    def _call(self, method, path, again=False, headers=None, **sent):
        headers = dict(headers or {}, Accept="application/json")
        pauses, broken, begun = [0.5, 2] if again else [], False, time.monotonic()
        while True:
            try:
                response = self._session.request(method, self.url + path, headers=headers, timeout=self.timeout, **sent)
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                if not pauses:
                    raise
                broken = True
                time.sleep(pauses.pop(0))
                continue
            if response.ok:
                return response.json()
            try:
                problem = response.json()
            except ValueError:
                problem = {"detail": response.text[:200]}
            if broken and problem.get("code") == "request/in-flight" and time.monotonic() - begun < self.timeout:
                time.sleep(1)  # the first one, whose connection broke, still runs
                continue
            raise Refused(response.status_code, problem)


class Answer:
    """What a question was answered with. Iterating gives rows as dicts; frame() a DataFrame; plot() a plot."""

    def __init__(self, response):
        self.response = response  # all of it, as the API describes it
        self.columns = [c["name"] for c in response["columns"]]
        self.rows = [tuple(row) for row in response["rows"]]
        self.intervals = response["intervals"]  # parallel to rows; None where there is none
        self.notes = [n["text"] for n in response["notes"]]
        self.useful = response.get("useful")  # {"rows": 0, "of": 10}: how many are not mostly noise; None where nothing has an interval
        self.spent = {currency: decimal.Decimal(amount) for currency, amount in response["spent"].items() if amount is not None}
        self.remaining = {currency: decimal.Decimal(amount) for currency, amount in response["remaining"].items() if amount is not None}
        self.replayed = response["replayed"]
        self.release_id = response["release_id"]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return (dict(zip(self.columns, row)) for row in self.rows)

    def frame(self):
        """A pandas DataFrame: beside each column with an interval stand NAME_low and NAME_high. attrs has notes, spent
        and release_id. Dates and times are timestamps; an interval without an end is infinite."""
        import pandas as pd

        data = {}
        for i, column in enumerate(self.response["columns"]):
            data[_free(column["name"], data)] = pd.Series([_value(row[i], column["type"]) for row in self.rows], dtype=_dtype(column["type"]))
            if self._has_interval(i):
                for end, name in enumerate(("low", "high")):
                    ends = [_end(cells[i], end, column["type"]) for cells in self.intervals]
                    data[_free(column["name"] + "_" + name, data)] = pd.Series(ends, dtype=_dtype(column["type"], whole=False))
        frame = pd.DataFrame(data)
        frame.attrs.update(notes=self.notes, spent={k: str(v) for k, v in self.spent.items()}, release_id=self.release_id)
        return frame

    def plot(self, x=None, y=None, ax=None):
        """Values with their intervals: points over time, bars over anything else. x is the column along the axis, y one
        or several outputs; all outputs with intervals, and the keys, when absent. Gives Matplotlib's axes."""
        import matplotlib.pyplot as plt

        columns = {c["name"]: (i, c) for i, c in enumerate(self.response["columns"])}
        ys = [y] if isinstance(y, str) else list(y or (c for c, (i, _) in columns.items() if self._has_interval(i)))
        if not ys:
            raise ValueError("the answer has no output with an interval to plot")
        xs = [x] if x else [c for c, (_, about) in columns.items() if about["kind"] == "key" and c not in ys]
        ax = ax or plt.subplots()[1]
        timeline = len(xs) == 1 and columns[xs[0]][1]["type"].startswith(("date", "timestamp"))
        if timeline:
            at = [_value(row[columns[xs[0]][0]], columns[xs[0]][1]["type"]) for row in self.rows]
        else:
            at = range(len(self.rows))
            labels = [", ".join("NULL" if row[columns[c][0]] is None else str(row[columns[c][0]]) for c in xs) or "all" for row in self.rows]
            slanted = max(map(len, labels), default=0) > 8
            ax.set_xticks(list(at), labels, rotation=45 if slanted else 0, ha="right" if slanted else "center")
        for n, name in enumerate(ys):
            i, about = columns[name]
            heights = [_number(row[i]) for row in self.rows]
            ends = [(_number(_end(c[i], 0, "")), _number(_end(c[i], 1, ""))) for c in self.intervals]
            errors = [[_arm(h, lo) for h, (lo, _) in zip(heights, ends)], [_arm(hi, h) for h, (_, hi) in zip(heights, ends)]]
            label = name + (" (too low)" if about.get("bias") == "low" else " (biased)" if about.get("bias") else "")
            if timeline:
                order = sorted(range(len(at)), key=lambda j: at[j])
                ax.errorbar([at[j] for j in order], [heights[j] for j in order], [[e[j] for j in order] for e in errors], fmt="o-",
                            capsize=3, label=label)
            else:
                width = 0.8 / len(ys)
                ax.bar([p + (n - (len(ys) - 1) / 2) * width for p in at], heights, width, yerr=errors, capsize=3, label=label)
        ax.set_xlabel(", ".join(xs))
        if len(ys) > 1:
            ax.legend()
        else:
            ax.set_ylabel(label)
        return ax

    def _has_interval(self, i):
        return any(cells and cells[i] is not None for cells in self.intervals)

    def __str__(self):
        table = [self.columns] + [["NULL" if v is None else str(v) for v in row] for row in self._shown()]
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join(lines + ["note: " + note for note in self.notes] + [self._paid()])

    __repr__ = __str__

    def _repr_html_(self):
        escape = lambda v: html.escape("NULL" if v is None else str(v))
        head = "".join("<th>%s</th>" % escape(c) for c in self.columns)
        rows = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % escape(v) for v in row) for row in self._shown())
        notes = "".join("<li>%s</li>" % escape(n) for n in self.notes)
        return "<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table><ul>%s</ul><p>%s</p>" % (head, rows, notes, escape(self._paid()))

    def _shown(self):
        """Rows for people: numbers without the digits that noise drowns, each with its interval."""
        for row, cells in zip(self.rows, self.intervals):
            shown = []
            for i, value in enumerate(row):
                column, ends = self.response["columns"][i], cells[i] if cells else None
                text = value if not _is_number(value) else _rounded(value, column.get("digits"))
                if column.get("bias") == "low" and value is not None:
                    text = ">= %s" % text
                if ends:
                    text = "%s [%s, %s]" % (("NULL" if text is None else text,) + tuple(_rounded(e, column.get("digits")) for e in ends))
                shown.append(text)
            yield shown

    def _paid(self):
        if self.replayed:
            return "nothing spent: this answer was paid for"
        return "spent " + ", ".join("%s %s" % (k, v) for k, v in self.spent.items() if k != "tail" and (v or k == "epsilon"))


def _exact(value):
    """A number of a budget as the gateway takes it: text whose digits nothing rounds."""
    if isinstance(value, str):
        return value
    return format(decimal.Decimal(repr(value) if isinstance(value, float) else value), "f")


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value):
    """A value as a float to draw; NaN for what is no number."""
    try:
        return float("nan") if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return float("nan")


def _arm(upper, lower):
    """How far a bar reaches; 0 where the interval has no end."""
    reach = upper - lower
    return reach if 0 <= reach < float("inf") else 0


def _rounded(value, digits):
    if digits is None or not _is_number(value):
        return "" if value is None else value
    return format(value, ".%df" % max(digits, 0))


_WHOLE = ("smallint", "integer", "bigint")
_BROKEN = ("real", "double precision", "numeric")


def _dtype(kind, whole=True):
    if kind in _WHOLE and whole:
        return "Int64"
    if kind in _WHOLE or kind.startswith(_BROKEN):
        return "float64"
    return None


def _value(value, kind):
    """A value of an answer in Python's types."""
    if value is None:
        return None
    if kind in _WHOLE:
        return int(value)  # beyond 2**53 they come as text
    if kind.startswith(_BROKEN):
        return float(value)
    if kind == "date" or kind.startswith("timestamp"):
        try:
            import pandas as pd

            return pd.Timestamp(value)
        except (ImportError, ValueError):
            return value
    return value


def _end(interval, end, kind):
    """One end of an interval: None where there is no interval, infinite where it has no end."""
    if interval is None:
        return None
    if interval[end] is None:
        return float("inf") if end else float("-inf")
    return _value(interval[end], kind if kind not in _WHOLE else "numeric")


def _free(name, taken):
    """A name that no column before has: SQL allows the same name twice, a frame does not."""
    while name in taken:
        name += "_"
    return name


def load_ipython_extension(ipython):
    """%load_ext noisegate: a cell that begins with %%noisegate is a question.

    %%noisegate [--dataset NAME] [--epsilon E | --rho R] [--delta D] [--estimate] [VARIABLE]
    """
    parser = argparse.ArgumentParser(prog="%%noisegate", add_help=False)
    for name in ("dataset", "epsilon", "rho", "delta"):
        parser.add_argument("--" + name)
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("variable", nargs="?")

    def cell(line, text):
        given = vars(parser.parse_args(shlex.split(line)))
        variable, estimate = given.pop("variable"), given.pop("estimate")
        client = Client()
        try:
            result = (client.estimate if estimate else client.query)(text, **given)
        except Refused as refused:
            print(refused)
            return None
        if variable:
            ipython.push({variable: result})
        return result

    ipython.register_magic_function(cell, magic_kind="cell", magic_name="noisegate")
