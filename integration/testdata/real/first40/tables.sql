-- Bicycles for hire in a city: riders are the people. Values are computed, not drawn: each run has the same rows.
CREATE TABLE stations (station_id int PRIMARY KEY, name varchar(40) NOT NULL UNIQUE, district varchar(20) NOT NULL, docks int NOT NULL, opened_on date NOT NULL);
CREATE TABLE riders (rider_id int PRIMARY KEY, birth_year int, gender varchar(1), plan varchar(10) NOT NULL, joined_on date NOT NULL,
  home_station int REFERENCES stations);
CREATE TABLE trips (trip_id bigint PRIMARY KEY, rider_id int NOT NULL REFERENCES riders, start_station int NOT NULL REFERENCES stations,
  end_station int NOT NULL REFERENCES stations, started_at timestamptz NOT NULL, ended_at timestamptz NOT NULL, bike_kind varchar(10) NOT NULL,
  distance_km numeric(5,2) NOT NULL, price numeric(6,2) NOT NULL);
CREATE TABLE tickets (ticket_id int PRIMARY KEY, rider_id int NOT NULL REFERENCES riders, opened_at timestamptz NOT NULL, closed_at timestamptz,
  topic varchar(20) NOT NULL, satisfaction int);
INSERT INTO stations SELECT g, 'Station ' || g, (ARRAY['Harbour', 'Old Town', 'University', 'North', 'South', 'Airport'])[1 + g * g % 6], 10 + g * 7 % 30,
  date '2022-01-01' + g * 11 % 600 FROM generate_series(1, 60) g;
INSERT INTO riders SELECT g, CASE WHEN g % 25 <> 0 THEN 1945 + g * 7919 % 62 END, (ARRAY['f', 'm', 'f', 'm', 'x', NULL])[1 + g * 13 % 6],
  (ARRAY['annual', 'annual', 'monthly', 'monthly', 'day', 'student'])[1 + g * 31 % 6], date '2022-03-01' + g * 104729 % 1000,
  CASE WHEN g % 3 > 0 THEN 1 + g * 17 % 60 END FROM generate_series(1, 6000) g;
-- Riders 1 to 5400 ride: most some times, few often.
INSERT INTO trips SELECT row_number() OVER (ORDER BY rider, n), rider, 1 + h % 60, CASE WHEN h % 9 = 0 THEN 1 + h % 60 ELSE 1 + h / 7 % 60 END, at,
  at + (4 + h % 50) * interval '1 minute', CASE WHEN h % 10 < 3 THEN 'electric' WHEN h % 10 = 3 THEN 'cargo' ELSE 'city' END, 0.4 + (h % 1400) / 100.0,
  CASE WHEN h % 10 < 3 THEN 1.5 ELSE 0.5 END + (4 + h % 50) * 0.08
  FROM (SELECT rider, n, h, timestamptz '2023-01-01 05:00+00' + (h % 365) * interval '1 day' + (h / 11 % 1140) * interval '1 minute' AS at
    FROM (SELECT rider, n, (rider::bigint * 7919 + n * 104729 + rider::bigint * n * 31) % 1000003 AS h FROM generate_series(1, 5400) rider,
      LATERAL generate_series(1, 1 + 60 / (1 + rider % 37)) n) a) b;
INSERT INTO tickets SELECT g, 1 + g * 7 % 6000, at, CASE WHEN g % 12 > 0 THEN at + (g * 37 % 4000) * interval '1 minute' END,
  (ARRAY['billing', 'bike broken', 'dock full', 'app', 'other'])[1 + g * 11 % 5], CASE WHEN g % 4 > 0 THEN 1 + g * 13 % 5 END
  FROM (SELECT g, timestamptz '2023-01-01 00:00+00' + (g * 104729 % 525000) * interval '1 minute' AS at FROM generate_series(1, 2500) g) a;
ANALYZE;
