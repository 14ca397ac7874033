CREATE TABLE "dice" ("id" integer NOT NULL UNIQUE, "a" integer, "b" integer, "c" integer, "d" integer, "e" integer, "f" integer, "g" integer);
INSERT INTO "dice" SELECT i, i, i, i, i, i, i, i FROM generate_series(1, 20) i;
