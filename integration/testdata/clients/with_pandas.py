import datetime

import pandas as pd
import sqlalchemy as sa
from common import BY_REGION, PEOPLE, REGIONS, check, end, left, near

engine = sa.create_engine("postgresql+psycopg2://")


def budget():
    return left(pd.read_sql("SHOW noisegate.budget", engine).iloc[0, 0])


with check("read_sql of a grouped question"):
    frame = pd.read_sql(BY_REGION, engine)
    assert list(frame.columns) == ["region", "n", "mean"] and list(frame.region) == REGIONS, frame
    assert frame.n.dtype == "int64" and frame["mean"].dtype == "float64", frame.dtypes
    for n in frame.n:
        near(n, PEOPLE / 4, 9900)
with check("a replay is free"):
    before = budget()
    assert pd.read_sql(BY_REGION, engine).equals(frame) and budget() == before
with check("read_sql with parameters"):
    counted = pd.read_sql(sa.text("SELECT sex, count(*) AS n FROM people WHERE age >= :age GROUP BY sex ORDER BY sex"), engine, params={"age": 17})
    near(counted.n.sum(), PEOPLE, 800)
with check("read_sql with parameters of the driver"):
    near(pd.read_sql("SELECT count(*) AS n FROM visits WHERE day >= %(day)s", engine, params={"day": datetime.date(2025, 1, 1)}).n[0], PEOPLE)
with check("dates as index"):
    months = pd.read_sql("SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1", engine,
                         index_col="month", parse_dates=["month"])
    assert len(months) == 12 and months.index[11].month == 12, months
with check("chunks"):
    with engine.connect() as c:
        assert pd.concat(pd.read_sql(BY_REGION, c, chunksize=3), ignore_index=True).equals(frame)
with check("chunks by a named cursor"):
    with engine.connect().execution_options(stream_results=True) as c:
        assert pd.concat(pd.read_sql(sa.text(BY_REGION), c, chunksize=3), ignore_index=True).equals(frame)
with check("a public table"):
    assert sorted(pd.read_sql_table("regions", engine).name) == REGIONS
with check("a private table is refused, readably"):
    before = budget()
    try:
        pd.read_sql_table("people", engine)
        raise AssertionError("rows of people")
    except (sa.exc.ProgrammingError, pd.errors.DatabaseError) as e:
        driver = getattr(e, "orig", None) or e.__cause__.orig  # pandas 3 has an error of its own around it
        assert driver.pgcode == "42501" and "policy/not-aggregate" in str(e), e
    assert budget() == before
with check("intervals as columns"):
    with engine.connect() as c:
        c.execute(sa.text("SET noisegate.intervals = columns"))
        wide = pd.read_sql(sa.text(BY_REGION), c)
    assert list(wide.columns) == ["region", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"], wide.columns
    assert (wide.n_low <= wide.n).all() and (wide.n <= wide.n_high).all() and list(wide.n) == list(frame.n), wide
with check("policy as a frame"):
    columns = pd.read_sql("SELECT table_name, column_name, low, high FROM noisegate.columns", engine)
    assert len(columns) == 18, columns
with check("to_sql is refused"):
    try:
        frame.to_sql("mine", engine)
        raise AssertionError("written")
    except sa.exc.DBAPIError as e:
        assert e.orig.pgcode == "25006", e.orig.pgcode
engine.dispose()
end()
