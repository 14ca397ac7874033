-- [01-trips]
SELECT count(*) FROM trips;

-- [02-riders-who-rode]
SELECT count(DISTINCT rider_id) FROM trips;

-- [03-riders-by-plan]
SELECT plan, count(*) FROM riders GROUP BY plan ORDER BY 2 DESC;

-- [04-mean-distance]
SELECT avg(distance_km) FROM trips;

-- [05-trips-by-month]
SELECT date_trunc('month', started_at) AS month, count(*) AS trips
FROM trips
GROUP BY 1
ORDER BY 1;

-- [06-trips-by-hour]
SELECT extract(hour FROM started_at) AS hour, count(*) FROM trips GROUP BY hour ORDER BY hour;

-- [07-trips-by-weekday]
SELECT to_char(started_at, 'Dy') AS weekday, count(*) FROM trips GROUP BY 1;

-- [08-busiest-stations]
SELECT s.name, count(*) AS departures
FROM trips t
JOIN stations s ON s.station_id = t.start_station
GROUP BY s.name
ORDER BY departures DESC
LIMIT 10;

-- [09-mean-minutes]
SELECT avg(extract(epoch FROM ended_at - started_at) / 60) AS minutes FROM trips;

-- [10-revenue-by-district]
SELECT s.district, sum(t.price) AS revenue
FROM trips t JOIN stations s ON t.start_station = s.station_id
GROUP BY 1 ORDER BY revenue DESC;

-- [11-distance-by-kind]
SELECT bike_kind, avg(distance_km), max(distance_km) FROM trips GROUP BY bike_kind;

-- [12-median-distance]
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY distance_km) FROM trips;

-- [13-share-annual]
SELECT avg((plan = 'annual')::int) AS share_annual FROM riders;

-- [14-age-by-gender]
SELECT gender, avg(2024 - birth_year) AS age FROM riders GROUP BY gender;

-- [15-age-bands]
SELECT CASE
    WHEN 2024 - birth_year < 25 THEN 'under 25'
    WHEN 2024 - birth_year < 45 THEN '25 to 44'
    WHEN 2024 - birth_year < 65 THEN '45 to 64'
    ELSE '65 and over'
  END AS age_band, count(*)
FROM riders
WHERE birth_year IS NOT NULL
GROUP BY age_band
ORDER BY age_band;

-- [16-trips-per-rider]
SELECT avg(n) FROM (SELECT rider_id, count(*) AS n FROM trips GROUP BY rider_id) per_rider;

-- [17-how-often-riders-ride]
SELECT n AS trips, count(*) AS riders
FROM (SELECT rider_id, count(*) AS n FROM trips GROUP BY rider_id) per_rider
GROUP BY n
ORDER BY n;

-- [18-never-rode]
SELECT count(*) FROM riders r LEFT JOIN trips t ON t.rider_id = r.rider_id WHERE t.rider_id IS NULL;

-- [19-never-complained]
SELECT count(*) FROM riders r WHERE NOT EXISTS (SELECT 1 FROM tickets k WHERE k.rider_id = r.rider_id);

-- [20-round-trips]
SELECT count(*) FROM trips WHERE start_station = end_station;

-- [21-revenue-by-month-and-kind]
SELECT to_char(started_at, 'YYYY-MM') AS month, bike_kind, sum(price) AS revenue
FROM trips
GROUP BY month, bike_kind
ORDER BY month, bike_kind;

-- [22-change-by-month]
WITH monthly AS (
  SELECT date_trunc('month', started_at) AS month, count(*) AS n FROM trips GROUP BY 1
)
SELECT month, n, n - lag(n) OVER (ORDER BY month) AS change FROM monthly ORDER BY month;

-- [23-running-revenue]
SELECT month, sum(revenue) OVER (ORDER BY month) AS so_far
FROM (SELECT date_trunc('month', started_at)::date AS month, sum(price) AS revenue FROM trips GROUP BY 1) m
ORDER BY month;

-- [24-share-by-kind]
SELECT bike_kind, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent FROM trips GROUP BY bike_kind;

-- [25-new-riders-by-quarter]
SELECT date_trunc('quarter', joined_on) AS quarter, count(*) FROM riders GROUP BY 1 ORDER BY 1;

-- [26-first-trips-by-month]
SELECT date_trunc('month', first_trip) AS month, count(*) AS riders
FROM (SELECT rider_id, min(started_at) AS first_trip FROM trips GROUP BY rider_id) f
GROUP BY 1 ORDER BY 1;

-- [27-came-back]
SELECT count(DISTINCT t.rider_id)
FROM trips t
WHERE t.started_at >= '2023-01-01' AND t.started_at < '2023-02-01'
  AND t.rider_id IN (SELECT rider_id FROM trips WHERE started_at >= '2023-02-01' AND started_at < '2023-03-01');

-- [28-satisfaction-by-topic]
SELECT topic, avg(satisfaction) AS satisfaction, count(*) AS tickets
FROM tickets
GROUP BY topic
HAVING count(*) > 50
ORDER BY satisfaction;

-- [29-hours-to-close]
SELECT avg(closed_at - opened_at) FROM tickets WHERE closed_at IS NOT NULL;

-- [30-median-price-by-plan]
SELECT r.plan, percentile_cont(0.5) WITHIN GROUP (ORDER BY t.price) AS median_price
FROM trips t JOIN riders r USING (rider_id)
GROUP BY r.plan;

-- [31-some-rows]
SELECT * FROM trips LIMIT 10;

-- [32-top-riders]
SELECT rider_id, count(*) AS trips FROM trips GROUP BY rider_id ORDER BY trips DESC LIMIT 10;

-- [33-largest-stations]
SELECT name, docks FROM stations ORDER BY docks DESC, name LIMIT 5;

-- [34-electric-share-by-district]
SELECT s.district, count(*) FILTER (WHERE t.bike_kind = 'electric')::float / count(*) AS electric
FROM trips t JOIN stations s ON s.station_id = t.start_station
GROUP BY s.district
ORDER BY s.district;

-- [35-first-and-last]
SELECT min(started_at), max(started_at) FROM trips;

-- [36-distance-and-price]
SELECT corr(distance_km, price) FROM trips;

-- [37-spread-of-prices]
SELECT avg(price), stddev(price) FROM trips;

-- [38-night-riders]
SELECT count(DISTINCT rider_id) FROM trips WHERE extract(hour FROM started_at) >= 22 OR extract(hour FROM started_at) < 5;

-- [39-weekends]
SELECT CASE WHEN extract(isodow FROM started_at) IN (6, 7) THEN 'weekend' ELSE 'weekday' END AS day, count(*), avg(distance_km)
FROM trips
GROUP BY 1;

-- [40-quarters-of-riders]
SELECT quarter, count(*), avg(spent)
FROM (SELECT rider_id, sum(price) AS spent, ntile(4) OVER (ORDER BY sum(price)) AS quarter FROM trips GROUP BY rider_id) q
GROUP BY quarter
ORDER BY quarter;
