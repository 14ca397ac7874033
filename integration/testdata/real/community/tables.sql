-- A forum with questions and answers, as its data warehouse has it. Members are the people. Values are computed, not drawn.
CREATE TYPE post_kind AS ENUM ('question', 'answer', 'comment');
CREATE TABLE categories (id int PRIMARY KEY, name varchar(50) NOT NULL, parent varchar(50), is_archived boolean NOT NULL);
CREATE TABLE tags (name varchar(30) PRIMARY KEY, is_required boolean NOT NULL);
CREATE TABLE badge_types (code varchar(40) PRIMARY KEY, class varchar(10) NOT NULL);
CREATE TABLE members (id uuid PRIMARY KEY, username varchar(60) NOT NULL UNIQUE, created_at timestamptz NOT NULL, country char(2), trust_level smallint NOT NULL,
  reputation int NOT NULL, last_seen_at timestamptz, is_moderator boolean NOT NULL DEFAULT false, interests text[], preferences jsonb);
CREATE TABLE posts (id bigint PRIMARY KEY, member_id uuid NOT NULL REFERENCES members, category_id int NOT NULL REFERENCES categories, kind post_kind NOT NULL, parent_id bigint, title varchar(200),
  score int NOT NULL, views int, created_at timestamptz NOT NULL, edited_at timestamptz, first_answer_at timestamptz, is_accepted boolean, closed_reason text, tags text[]);
CREATE TABLE post_tags (post_id bigint NOT NULL REFERENCES posts, tag varchar(30) NOT NULL REFERENCES tags, PRIMARY KEY (post_id, tag));
CREATE TABLE votes (id bigint PRIMARY KEY, member_id uuid NOT NULL REFERENCES members, post_id bigint NOT NULL REFERENCES posts, value smallint NOT NULL, cast_at timestamptz NOT NULL);
CREATE TABLE visits (member_id uuid NOT NULL REFERENCES members, visited_on date NOT NULL, device varchar(10), seconds int, posts_read int NOT NULL, PRIMARY KEY (member_id, visited_on));
CREATE TABLE badges (id bigint PRIMARY KEY, member_id uuid NOT NULL REFERENCES members, badge varchar(40) NOT NULL REFERENCES badge_types, awarded_at timestamptz NOT NULL);
INSERT INTO categories VALUES (1, 'Help', NULL, false), (2, 'Show and tell', NULL, false), (3, 'Installation', 'Help', false), (4, 'Plugins', 'Help', false), (5, 'Meta', NULL, false), (6, 'Old forum', NULL, true);
INSERT INTO tags VALUES ('bug', true), ('feature', true), ('question', true), ('docker', false), ('upgrade', false), ('login', false), ('email', false), ('search', false), ('theme', false), ('api', false), ('mobile', false), ('solved', false);
INSERT INTO badge_types VALUES ('first-post', 'bronze'), ('first-like', 'bronze'), ('editor', 'bronze'), ('good-answer', 'silver'), ('enthusiast', 'silver'), ('devotee', 'gold'), ('great-answer', 'gold');
INSERT INTO members SELECT md5('m' || i)::uuid, 'member' || i, timestamptz '2022-01-01 00:00+00' + (i * 7919 % 730) * interval '1 day' + (i * 104729 % 86400) * interval '1 second',
  (ARRAY['US','US','US','DE','IN','IN','GB','BR','FR',NULL,'JP','PL','NL','US'])[1 + i * 31 % 14], CASE WHEN i % 100 < 45 THEN 0 WHEN i % 100 < 75 THEN 1 WHEN i % 100 < 93 THEN 2 WHEN i % 100 < 99 THEN 3 ELSE 4 END,
  least(20000, 40000 / (1 + i * 613 % 4000)), CASE WHEN i % 9 > 0 THEN timestamptz '2024-01-01 00:00+00' + (i * 389 % 91) * interval '1 day' END, i % 400 = 7,
  CASE WHEN i % 3 = 0 THEN ARRAY['hosting','design'] WHEN i % 3 = 1 THEN ARRAY['coding'] END, jsonb_build_object('theme', CASE WHEN i % 4 = 0 THEN 'dark' ELSE 'light' END, 'digest', i % 5 = 0)
  FROM generate_series(1, 3000) i;
INSERT INTO posts SELECT row_number() OVER (ORDER BY i, n), md5('m' || i)::uuid, 1 + (i * 13 + n * 7) % 6, (ARRAY['question','answer','answer','comment','answer','question','comment'])[1 + (i + n * 3) % 7]::post_kind,
  NULL, CASE WHEN (i + n * 3) % 7 IN (0, 5) THEN 'Topic ' || i || '/' || n END, (i * 17 + n * 29) % 23 - 3 + CASE WHEN (i * n) % 41 = 0 THEN 60 ELSE 0 END, CASE WHEN (i + n * 3) % 7 IN (0, 5) THEN 20 + (i * 7 + n * 4001) % 1500 END,
  timestamptz '2024-01-01 00:00+00' + ((i * 37 + n * n * 11 + n * 101) % 91) * interval '1 day' + ((i * 7919 + n * 5417) % 86400) * interval '1 second',
  NULL, NULL, CASE WHEN (i + n * 3) % 7 IN (1, 2, 4) THEN (i * 3 + n) % 4 = 0 END, NULL, CASE WHEN (i + n) % 3 > 0 THEN ARRAY['bug','docker'] END
  FROM (SELECT i, least(80, 600 / (1 + i * 271 % 1000)) AS posts FROM generate_series(1, 3000) i) m, generate_series(1, 80) n WHERE n <= posts;
UPDATE posts SET edited_at = CASE WHEN id % 4 = 0 THEN created_at + (id * 97 % 3600) * interval '1 second' END,
  first_answer_at = CASE WHEN kind = 'question' AND id % 5 > 0 THEN created_at + (10 + id * id % 4000) * interval '1 minute' END, closed_reason = CASE WHEN kind = 'question' AND id % 11 = 0 THEN (ARRAY['duplicate','off topic','spam'])[1 + id % 3] END;
UPDATE posts p SET parent_id = 1 + p.id * 31 % 900 WHERE kind <> 'question';
INSERT INTO post_tags SELECT id, (ARRAY['bug','feature','question','question'])[1 + id % 4] FROM posts WHERE kind = 'question'
  UNION SELECT id, (ARRAY['docker','upgrade','docker','login','email','docker','search','upgrade','theme','api','mobile'])[1 + id * 7 % 11] FROM posts WHERE kind = 'question' AND id % 3 > 0;
INSERT INTO votes SELECT row_number() OVER (ORDER BY i, n), md5('m' || i)::uuid, 1 + (i * 53 + n * 997) % 5000, CASE WHEN (i + n * 5) % 9 = 0 THEN -1 ELSE 1 END, timestamptz '2024-01-01 06:00+00' + ((i * 3 + n * 13) % 90) * interval '1 day'
  FROM (SELECT i, least(60, 500 / (1 + i * 997 % 1000)) AS votes FROM generate_series(1, 3000) i) m, generate_series(1, 60) n WHERE n <= votes;
INSERT INTO visits SELECT md5('m' || i)::uuid, date '2024-01-01' + d, (ARRAY['desktop','mobile','desktop','tablet',NULL,'mobile'])[1 + (i + d * d) % 6], CASE WHEN (i + d) % 13 > 0 THEN 20 + (i * 389 + d * 6007) % 3400 END, (i * 7 + d * 11) % 60
  FROM (SELECT i, least(90, 4 + 1300 / (1 + i * 719 % 1000)) AS p, i * 7919 % 730 AS joined FROM generate_series(1, 3000) i) m, generate_series(0, 90) d WHERE (i * 12347 + d * 7877 + i * d * 31) % 100 < p AND d + 730 > joined;
INSERT INTO badges SELECT row_number() OVER (ORDER BY i, n), md5('m' || i)::uuid, (ARRAY['first-post','first-like','editor','good-answer','enthusiast','devotee','great-answer'])[1 + n],
  timestamptz '2022-01-01 00:00+00' + (i * 7919 % 730) * interval '1 day' + (1 + i * 7 % 60 + n * n * 9) * interval '1 day' FROM generate_series(1, 3000) i, generate_series(0, 6) n WHERE i * 137 % 101 > n * 16;
CREATE INDEX ON posts (member_id);
CREATE INDEX ON votes (member_id);
CREATE INDEX ON badges (member_id);
ANALYZE;
