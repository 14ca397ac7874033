CREATE TABLE "stays" ("person_id" bigint, "ward" integer NOT NULL, "hours" integer NOT NULL, "cost" numeric(8,2));
CREATE INDEX ON "stays" ("person_id", "ward", "hours");
INSERT INTO "stays" SELECT i, i, i, i / 7.0 FROM generate_series(1, 20) i;
CREATE TABLE "tests" ("person_id" bigint, "ward" integer NOT NULL);
INSERT INTO "tests" SELECT i, i FROM generate_series(1, 20) i;
