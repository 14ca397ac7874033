"""psql's tab completion: a terminal of psql's, in which somebody types and presses Tab."""
import os
import pty
import re
import select
import time

from common import end, ok

PLACES = [  # what is typed, and a pattern of the line, or of the list of two Tabs, that it becomes
    ("SELECT * FROM peo", r"SELECT \* FROM people "),
    ("SELECT * FROM public.vis", r"SELECT \* FROM public\.visits "),
    ("SELECT * FROM ", r"people\b[\s\S]*regions\b[\s\S]*visits"),
    ("SELECT * FROM people WHERE capital_g", r"WHERE capital_gain "),
    ("SELECT * FROM people WHERE education", r"education +education_num"),
    ("SELECT count(*) FROM visits JOIN reg", r"JOIN regions "),
    ("SELECT count(*) FROM visits ORDER BY amo", r"ORDER BY amount "),
    ("SELECT count(*) FROM visits GROUP B", r"GROUP BY "),
    ("SET noisegate.eps", r"SET noisegate\.epsilon "),
    ("SET noisegate.", r"noisegate\.epsilon +noisegate\.max_error"),
    ("SHOW noisegate.bud", r"SHOW noisegate\.budget "),
    ("RESET noisegate.int", r"RESET noisegate\.intervals "),
    ("SET search_p", r"SET search_path "),
    ("SHOW server_ver", r"SHOW server_version"),
    ("\\d peo", r"\\d people "),
    ("\\d+ vis", r"\\d\+ visits "),
    ("\\dt reg", r"\\dt regions "),
    ("\\dn pub", r"\\dn public "),
    ("\\l cen", r"\\l census "),
    ("\\c cen", r"\\c census "),
    ("\\du an", r"\\du an"),
    ("\\df coun", r"\\df count"),
    ("\\dT int", r"int"),
    ("TABLE reg", r"TABLE regions "),
    ("EXPLAIN SEL", r"EXPLAIN SELECT "),
    ("COPY peo", r"COPY people "),
    ("INSERT INTO peo", r"INSERT INTO people "),
    ("LOCK TABLE vis", r"LOCK TABLE visits "),
    ("PREPARE p AS SEL", r"PREPARE p AS SELECT "),
    ("START TRANS", r"START TRANSACTION "),
    ("COMMENT ON TABLE peo", r"COMMENT ON TABLE people "),
    ("GRANT SELECT ON vis", r"GRANT SELECT ON visits "),
    ("ALTER TABLE people DROP COLUMN inc", r"DROP COLUMN income "),
    ("UPDATE people SET hou", r"SET hours_per_week "),
    ("VACUUM peo", r"VACUUM people "),
]
PATIENCE = 10  # seconds for a completion, of which each is a question or two to the catalog


def read_until(terminal, pattern, shown=""):
    """What a terminal shows, after what it has shown, until a pattern is there or patience ends."""
    deadline = time.monotonic() + PATIENCE
    while not re.search(pattern, shown) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.05)[0]:
            shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", os.read(terminal, 65536).decode(errors="replace"))
    return shown


process, terminal = pty.fork()
if process == 0:
    os.environ.update(TERM="dumb", COLUMNS="200", INPUTRC="/dev/null", PSQL_HISTORY="/dev/null")
    os.execvp("psql", ["psql", "--no-psqlrc", "--pset=pager=off", "--quiet"])
read_until(terminal, "census=>")
for place, (typed, becomes) in enumerate(PLACES):
    os.write(terminal, typed.encode())
    shown = read_until(terminal, re.escape(typed))
    os.write(terminal, b"\t\t")
    shown = read_until(terminal, becomes, shown)
    ok("Tab after " + typed, re.search(becomes, shown) is not None, shown)
    os.write(terminal, b"\x15\\echo place %d\n" % place)  # Ctrl-U takes the line back
    read_until(terminal, f"\nplace {place}\r?\ncensus=> ")
os.write(terminal, b"\\q\n")
os.waitpid(process, 0)
end()
