CREATE TABLE "weights" ("person_id" integer, "year" integer NOT NULL, "side" text, "kilos" integer NOT NULL, UNIQUE ("person_id", "year", "side"));
INSERT INTO "weights" SELECT i, i, 'k' || i, i FROM generate_series(1, 20) i;
