import sqlalchemy as sa
from common import BY_REGION, PEOPLE, REGIONS, check, end, left, near
from sqlalchemy.orm import Session, declarative_base

engine = sa.create_engine("postgresql+psycopg2://", future=True)
look = sa.inspect(engine)


def budget():
    with engine.connect() as c:
        return left(c.execute(sa.text("SHOW noisegate.budget")).scalar())


with check("schemas"):
    assert look.get_schema_names() == ["information_schema", "public"] and look.default_schema_name == "public", look.get_schema_names()
with check("tables and views"):
    assert sorted(look.get_table_names()) == ["people", "regions", "visits"] and look.get_view_names() == []
    assert look.has_table("people") and not look.has_table("nothing")
with check("columns"):
    columns = {c["name"]: c for c in look.get_columns("visits")}
    assert sorted(columns) == ["amount", "day", "region"], columns
    assert str(columns["amount"]["type"]) == "NUMERIC(8, 2)" and isinstance(columns["day"]["type"], sa.Date)
    assert not columns["amount"]["nullable"] and "Bounds 2025-01-01 to 2025-12-31" in columns["day"]["comment"], columns["day"]
for what, call in {"primary keys": look.get_pk_constraint, "foreign keys": look.get_foreign_keys, "indexes": look.get_indexes,
                   "unique constraints": look.get_unique_constraints, "check constraints": look.get_check_constraints,
                   "comments": look.get_table_comment, "options": look.get_table_options}.items():
    with check(what):
        for table in look.get_table_names():
            call(table)
with check("the primary key of a public table"):
    assert look.get_pk_constraint("regions")["constrained_columns"] == ["name"]
with check("the comment of a table"):
    assert "Private: each row is one privacy unit." == look.get_table_comment("people")["text"], look.get_table_comment("people")
with check("sequences and enums"):
    assert look.get_sequence_names() == [] and look.get_enums() == []
with check("reflection of all tables"):
    meta = sa.MetaData()
    meta.reflect(engine)
    assert sorted(meta.tables) == ["people", "regions", "visits"] and "person_id" not in meta.tables["people"].c
visits, people = meta.tables["visits"], meta.tables["people"]
question = sa.select(visits.c.region, sa.func.count().label("n")).group_by(visits.c.region).order_by(visits.c.region)
with check("a grouped question"):
    with engine.connect() as c:
        rows = c.execute(question).all()
    assert [r.region for r in rows] == REGIONS and all(isinstance(r.n, int) for r in rows), rows
with check("a replay is free"):
    before = budget()
    with engine.connect() as c:
        assert c.execute(question).all() == rows
    assert budget() == before
with check("a question with parameters"):
    with engine.connect() as c:
        near(c.execute(sa.select(sa.func.count().label("n")).select_from(people).where(people.c.age.between(17, 90))).scalar(), PEOPLE)
with check("a list"):
    with engine.connect() as c:
        near(c.execute(sa.select(sa.func.count().label("n")).where(visits.c.region.in_(["East", "West"]))).scalar(), PEOPLE / 2)
with check("months"):
    month = sa.func.date_trunc("month", visits.c.day).label("month")
    with engine.connect() as c:
        assert len(c.execute(sa.select(month, sa.func.count().label("n")).group_by(month).order_by(month)).all()) == 12
with check("a cast mean"):
    with engine.connect() as c:
        mean = c.execute(sa.select(sa.cast(sa.func.avg(people.c.age), sa.Float).label("mean"))).scalar()
    assert isinstance(mean, float) and abs(mean - 53) < 20, mean
with check("rows of people are refused"):
    before = budget()
    with engine.connect() as c:
        try:
            c.execute(sa.select(people.c.age).limit(10)).all()
            raise AssertionError("rows of people")
        except sa.exc.ProgrammingError as e:
            assert e.orig.pgcode == "42501" and e.orig.diag.message_hint, e
    assert budget() == before
with check("a public table"):
    with engine.connect() as c:
        assert [r.name for r in c.execute(sa.select(meta.tables["regions"]).order_by("name"))] == REGIONS
with check("an object of a public table"):
    Base = declarative_base()

    class Region(Base):
        __table__ = meta.tables["regions"]

    with Session(engine) as s:
        assert [r.name for r in s.query(Region).order_by(Region.name)] == REGIONS and s.get(Region, "East").name == "East"
with check("rows by a named cursor"):
    with engine.connect().execution_options(stream_results=True, max_row_buffer=2) as c:
        assert [r.region for r in c.execute(sa.text(BY_REGION))] == REGIONS
with check("isolation levels"):
    for level in ("AUTOCOMMIT", "READ COMMITTED", "SERIALIZABLE"):
        with engine.connect().execution_options(isolation_level=level) as c:
            assert c.execute(sa.text("SELECT 1")).scalar() == 1
with check("savepoints"):
    with engine.begin() as c:
        try:
            with c.begin_nested():
                c.execute(sa.select(people.c.age)).all()
        except sa.exc.ProgrammingError:
            pass
        assert c.execute(sa.text("SELECT 1")).scalar() == 1
with check("creating a table is refused"):
    try:
        sa.Table("mine", sa.MetaData(), sa.Column("i", sa.Integer)).create(engine)
        raise AssertionError("created")
    except sa.exc.DBAPIError as e:
        assert e.orig.pgcode == "25006", e.orig.pgcode
with check("a pool that pings"):
    pinged = sa.create_engine("postgresql+psycopg2://", pool_pre_ping=True)
    for _ in range(2):
        with pinged.connect() as c:
            c.execute(sa.text("SELECT 1"))
    pinged.dispose()
engine.dispose()
end()
