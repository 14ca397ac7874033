"""What the scripts of all peers share: questions, data, and how answers are written.

A script is called as SCRIPT QUESTIONS FOLDER DSN DRAWS SECONDS ID... FOLDER has one CSV file for each data set, DSN is
a PostgreSQL database with the same tables. For each question of these IDs it prints one line of JSON: `answers`, at most
DRAWS of them and at least 3, for about SECONDS, and `seconds`, how long each took; or `unsupported`, the reason why the peer cannot be asked; or `failed`,
an error.
"""
import json
import os
import sys
import time


class Unsupported(Exception):
    """The peer has no way to answer the question at its guarantee; the text says why, for docs/comparison.md."""


def main(version, ask):
    """Asks everything. ask(question, file, dsn) gives a function that draws one answer, from keys to numbers."""
    out, sys.stdout = sys.stdout, sys.stderr  # peers print
    file, folder, dsn, draws, seconds = sys.argv[1:6]
    with open(file) as f:
        questions = [q for q in json.load(f) if q["id"] in sys.argv[6:]]
    print(json.dumps({"version": version}), file=out, flush=True)
    for q in questions:
        line = {"id": q["id"]}
        try:
            draw = ask(q, os.path.join(folder, q["data"] + ".csv"), dsn)
            answers, took, end = [], [], time.monotonic() + float(seconds)
            while len(answers) < int(draws) and (len(answers) < 3 or time.monotonic() < end):
                began = time.monotonic()
                answer = draw()
                took.append(time.monotonic() - began)
                answers.append({str(k): float(v) for k, v in answer.items()})
            line["answers"], line["seconds"] = answers, took
        except Unsupported as e:
            line["unsupported"] = str(e)
        except Exception as e:  # the next question may work
            line["failed"] = f"{type(e).__name__}: {e}"[:2000]
        print(json.dumps(line), file=out, flush=True)
