CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE "people" ("person_id" integer NOT NULL UNIQUE, "age" integer, "sex" text NOT NULL, "country" text, "income" bigint NOT NULL, "height" double precision, "balance" numeric(10,2), "ratio" numeric, "married" boolean, "born" date, "seen" timestamptz, "token" uuid, "mood" mood, "ssn" text);
INSERT INTO "people" SELECT i, i, 'k' || i % 3, 'k' || i % 3, i, i / 7.0, i / 7.0, i / 7.0, i % 2 = 0, date '2000-01-01' + i, timestamp '2001-01-01 10:00' + i * interval '7 hours', ('00000000-0000-0000-0000-0000000000' || to_char(i, 'FM00'))::uuid, (enum_range(NULL::mood))[1 + i % 2], 'k' || i % 3 FROM generate_series(1, 20) i;
CREATE TABLE "visits" ("visit_id" bigint NOT NULL UNIQUE, "person_id" integer, "region" text NOT NULL, "ward" integer NOT NULL, "reason" text, "amount" numeric(8,2), "minutes" integer NOT NULL);
INSERT INTO "visits" SELECT i, i, 'k' || i % 3, i, 'k' || i % 3, i / 7.0, i FROM generate_series(1, 20) i;
CREATE TABLE "shops" ("shop_id" integer NOT NULL UNIQUE, "name" text);
INSERT INTO "shops" SELECT i, 'k' || i % 3 FROM generate_series(1, 20) i;
