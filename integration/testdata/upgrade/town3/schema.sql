CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE "customer" ("customer_id" integer NOT NULL UNIQUE, "store_id" integer NOT NULL);
INSERT INTO "customer" SELECT i, i FROM generate_series(1, 20) i;
CREATE TABLE "rental" ("rental_id" integer NOT NULL UNIQUE, "customer_id" integer, "kind" text NOT NULL, "returned" date, "seen" timestamp, "hours" integer NOT NULL, "score" double precision, "fee" numeric(6,2), "free" numeric, "code" char, "mood" mood);
INSERT INTO "rental" SELECT i, i, 'k' || i % 3, date '2000-01-01' + i, timestamp '2001-01-01 10:00' + i * interval '7 hours', i, i / 7.0, i / 7.0, i / 7.0, substr('xyz', 1 + i % 3, 1), (enum_range(NULL::mood))[1 + i % 2] FROM generate_series(1, 20) i;
