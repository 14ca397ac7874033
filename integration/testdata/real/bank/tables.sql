-- A retail bank: clients are the people; accounts, cards, loans and transactions are theirs. Values are computed, not drawn.
CREATE TYPE client_segment AS ENUM ('retail', 'premium', 'business');
CREATE TABLE districts (id int PRIMARY KEY, name varchar(40) NOT NULL, region varchar(30) NOT NULL, inhabitants int NOT NULL, avg_salary numeric(8,1) NOT NULL, unemployment numeric(4,2));
CREATE TABLE exchange_rates (currency char(3) NOT NULL, month date NOT NULL, rate numeric(10,4) NOT NULL, PRIMARY KEY (currency, month));
CREATE TABLE clients (id int PRIMARY KEY, birth_date date NOT NULL, gender char(1), district_id int NOT NULL REFERENCES districts, segment client_segment NOT NULL, email text, consents jsonb, created_at timestamp NOT NULL);
CREATE TABLE accounts (id bigint PRIMARY KEY, client_id int NOT NULL REFERENCES clients, iban varchar(34) NOT NULL UNIQUE, currency char(3) NOT NULL, frequency varchar(20) NOT NULL, opened_on date NOT NULL, closed_on date);
CREATE TABLE cards (id bigint PRIMARY KEY, account_id bigint NOT NULL REFERENCES accounts, type varchar(10) NOT NULL, issued_at timestamp NOT NULL);
CREATE TABLE loans (id bigint PRIMARY KEY, account_id bigint NOT NULL UNIQUE REFERENCES accounts, granted_on date NOT NULL, amount numeric(12,2) NOT NULL, months smallint NOT NULL, payment numeric(10,2) NOT NULL, status char(1) NOT NULL);
CREATE TABLE transactions (id bigint PRIMARY KEY, account_id bigint NOT NULL REFERENCES accounts, booked_at timestamp NOT NULL, direction varchar(6) NOT NULL, operation varchar(30), amount numeric(12,2) NOT NULL, balance numeric(14,2) NOT NULL, purpose varchar(20));
INSERT INTO districts SELECT i, 'District ' || i, (ARRAY['Capital','North','South','East','West','Central'])[1 + i % 6], 40000 + i * 3571, 8000 + i * 137 % 4500 + 0.5, CASE WHEN i % 10 > 0 THEN round(i * 0.17, 2) END FROM generate_series(1, 30) i;
INSERT INTO exchange_rates SELECT c, m::date, CASE c WHEN 'EUR' THEN 1 WHEN 'CZK' THEN 0.04 ELSE 0.9 END + extract(month FROM m) * 0.0001 FROM unnest(ARRAY['EUR','CZK','USD']) c, generate_series(timestamp '2023-01-01', timestamp '2023-12-01', interval '1 month') m;
INSERT INTO clients SELECT i, date '1940-01-01' + (i * 7919 % 23000), (ARRAY['F','M','F','M','F','M',NULL,'F'])[1 + i % 8], 1 + least(i * 31 % 30, i * 17 % 30), (CASE WHEN i % 20 < 15 THEN 'retail' WHEN i % 20 < 18 THEN 'premium' ELSE 'business' END)::client_segment,
  CASE WHEN i % 3 > 0 THEN 'c' || i || '@mail.test' END, jsonb_build_object('marketing', i % 3 = 0), timestamp '2018-01-01 09:00' + (i * 389 % 1800) * interval '1 day' FROM generate_series(1, 3000) i;
INSERT INTO accounts SELECT row_number() OVER (ORDER BY i, n), i, 'CZ' || lpad((i * 10 + n)::text, 20, '0'), (ARRAY['CZK','CZK','EUR','CZK','USD'])[1 + (i + n) % 5], (ARRAY['monthly','monthly','weekly','monthly','after_transaction'])[1 + (i * 3 + n) % 5],
  date '2018-01-01' + (i * 389 + n * 211) % 1800, CASE WHEN (i * 7 + n) % 11 = 0 THEN date '2023-01-01' + (i * 13 % 365) END FROM generate_series(1, 3000) i, generate_series(0, 3) n WHERE n = 0 OR (i * 53 + n) % (4 * n * n) = 0;
INSERT INTO cards SELECT row_number() OVER (ORDER BY a.id, n), a.id, (ARRAY['classic','classic','gold','junior'])[1 + (a.id + n) % 4], a.opened_on + (20 + a.id * 17 % 400 + n * 300) * interval '1 day' + interval '10 hours' FROM accounts a, generate_series(0, 1) n WHERE (a.id * 7 + n * 5) % 10 < 5 - 3 * n;
INSERT INTO loans SELECT a.id, a.id, date '2019-01-01' + (a.id * 101 % 1700)::int, 5000 + (a.id * 7919 % 295000), (ARRAY[12,24,36,48,60])[1 + a.id % 5], 0, (ARRAY['A','A','C','C','C','C','B','C','D','C'])[1 + a.id * 3 % 10] FROM accounts a WHERE a.id % 3 = 0;
UPDATE loans SET payment = round(amount / months, 2);
INSERT INTO transactions SELECT row_number() OVER (ORDER BY a.id, n), a.id, timestamp '2023-01-01 08:00' + ((a.id * 37 + n * 29 + n * n * 3) % 365) * interval '1 day' + ((a.id * 7919 + n * 5417) % 36000) * interval '1 second',
  CASE WHEN n % 4 = 0 THEN 'credit' ELSE 'debit' END, CASE WHEN (a.id + n) % 9 > 0 THEN (ARRAY['card withdrawal','cash withdrawal','bank transfer','cash deposit','collection'])[1 + (a.id + n * 3) % 5] END,
  CASE WHEN n % 4 = 0 THEN 12000 + a.id * 31 % 30000 ELSE 50 + (a.id * 613 + n * 4241) % 9000 END + CASE WHEN (a.id * n) % 97 = 5 THEN 40000 ELSE 0 END, (a.id * 271 + n * 3511) % 90000 - 6000,
  CASE WHEN n % 4 > 0 THEN (ARRAY['household','insurance','','loan payment','pension',NULL])[1 + (a.id + n * 5) % 6] END
  FROM (SELECT id, least(100, 4 + 500 / (1 + id * 277 % 500)) AS bookings FROM accounts) a, generate_series(1, 100) n WHERE n <= bookings;
CREATE INDEX ON accounts (client_id);
CREATE INDEX ON cards (account_id);
CREATE INDEX ON transactions (account_id);
ANALYZE;
