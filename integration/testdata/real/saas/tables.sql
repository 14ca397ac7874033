-- A subscription service: users are the people, what they pay for and what they do. Values are computed, not drawn.
CREATE TABLE plans (plan varchar(20) PRIMARY KEY, monthly_price numeric(8,2) NOT NULL, seats int NOT NULL);
CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL UNIQUE, signed_up_at timestamptz NOT NULL, country char(2) NOT NULL, source text, is_staff boolean NOT NULL DEFAULT false);
CREATE TABLE subscriptions (id bigint PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, plan varchar(20) NOT NULL REFERENCES plans, mrr_cents int NOT NULL, started_at timestamptz NOT NULL, canceled_at timestamptz, cancel_reason text);
CREATE TABLE invoices (id bigint PRIMARY KEY, subscription_id bigint NOT NULL REFERENCES subscriptions, issued_on date NOT NULL, paid_at timestamptz, status varchar(10) NOT NULL, amount_cents int NOT NULL);
CREATE TABLE events (id bigint PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, name varchar(40) NOT NULL, occurred_at timestamptz NOT NULL, device text, page text, duration_ms int);
INSERT INTO plans VALUES ('free', 0, 1), ('starter', 9, 3), ('team', 29, 10), ('business', 99, 50);
INSERT INTO users SELECT g, 'u' || g || '@' || (ARRAY['gmail.com','example.org','firm.test'])[1 + g % 3], timestamptz '2023-01-01+00' + (g * 7919 % 365) * interval '1 day' + (g * 31 % 86400) * interval '1 second',
  (ARRAY['US','US','DE','GB','FR','BR','IN','US'])[1 + g % 8], (ARRAY['google','newsletter','friend',NULL,'ads'])[1 + g * 13 % 5], g % 500 = 0 FROM generate_series(1, 6000) g;
INSERT INTO subscriptions SELECT g, u.id, p.plan, (p.monthly_price * 100)::int, u.signed_up_at + (g % 20) * interval '1 day',
  CASE WHEN g * 17 % 10 < 4 THEN u.signed_up_at + (30 + g * 37 % 200) * interval '1 day' END,
  CASE WHEN g * 17 % 10 < 4 THEN (ARRAY['too_expensive','missing_feature','switched_tool',NULL])[1 + g % 4] END
  FROM generate_series(1, 5000) g JOIN users u ON u.id = 1 + g * 7 % 4500 JOIN plans p ON p.plan = (ARRAY['free','starter','starter','team','business'])[1 + g * 3 % 5];
INSERT INTO invoices SELECT row_number() OVER (ORDER BY s.id, n), s.id, (s.started_at + n * interval '1 month')::date,
  CASE WHEN (s.id * 3 + n) % 12 < 11 THEN (s.started_at + n * interval '1 month')::date + ((s.id + n * 5) % 25) * interval '1 day' + interval '9 hours' END,
  CASE WHEN (s.id * 3 + n) % 12 < 11 THEN 'paid' ELSE 'open' END, s.mrr_cents
  FROM subscriptions s, generate_series(0, 11) n WHERE s.mrr_cents > 0 AND s.started_at + n * interval '1 month' < coalesce(s.canceled_at, timestamptz '2024-01-01+00');
INSERT INTO events SELECT row_number() OVER (ORDER BY u.id, n), u.id, (ARRAY['signup','page_view','page_view','create_project','page_view','invite','page_view','search','page_view','upgrade'])[1 + n % 10],
  u.signed_up_at + n * n * (u.id * 13 % 40) * interval '37 minutes' + n * interval '11 minutes', (ARRAY['desktop','mobile',NULL,'desktop','tablet'])[1 + (u.id + n) % 5],
  (ARRAY['/app/home','/app/board/12','/docs/start','/settings/billing','/pricing'])[1 + (u.id * 3 + n) % 5], CASE WHEN n % 3 > 0 THEN 100 + ((u.id * 7919 + n * 104729) % 5000)::int END
  FROM users u, generate_series(0, 29) n WHERE n < 2 + u.id % 29;
CREATE INDEX ON subscriptions (user_id);
CREATE INDEX ON invoices (subscription_id);
CREATE INDEX ON events (user_id);
ANALYZE;
