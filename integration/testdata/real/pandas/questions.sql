-- [sqlalchemy-groupby-agg]
SELECT riders.plan, count(*) AS count_1, avg(riders.birth_year) AS avg_1, count(distinct(riders.home_station)) AS count_2
FROM riders
WHERE riders.birth_year IS NOT NULL GROUP BY riders.plan ORDER BY count(*) DESC

-- [sqlalchemy-resample]
SELECT date_trunc('month', anon_1.started_at) AS month, anon_1.bike_kind AS bike_kind, sum(anon_1.price) AS revenue, count(anon_1.trip_id) AS trips
FROM (SELECT trips.trip_id AS trip_id, trips.started_at AS started_at, trips.bike_kind AS bike_kind, trips.price AS price
FROM trips
WHERE trips.started_at >= '2023-04-01 00:00:00' AND trips.started_at < '2023-10-01 00:00:00' AND trips.bike_kind != 'cargo') AS anon_1 GROUP BY date_trunc('month', anon_1.started_at), anon_1.bike_kind ORDER BY month, bike_kind

-- [sqlalchemy-cut]
SELECT CASE WHEN (trips.distance_km <= 2) THEN '(0, 2]' WHEN (trips.distance_km <= 5) THEN '(2, 5]' WHEN (trips.distance_km <= 10) THEN '(5, 10]' ELSE '(10, 15]' END AS bin, count(*) AS n, avg(trips.price) AS price
FROM trips GROUP BY CASE WHEN (trips.distance_km <= 2) THEN '(0, 2]' WHEN (trips.distance_km <= 5) THEN '(2, 5]' WHEN (trips.distance_km <= 10) THEN '(5, 10]' ELSE '(10, 15]' END

-- [sqlalchemy-top-stations]
SELECT stations.name, count(trips.trip_id) AS trips, EXTRACT(hour FROM trips.started_at) AS hour
FROM trips JOIN stations ON stations.station_id = trips.start_station
WHERE trips.start_station IN (SELECT trips.start_station
FROM trips GROUP BY trips.start_station ORDER BY count(*) DESC
 LIMIT 5) GROUP BY stations.name, EXTRACT(hour FROM trips.started_at), trips.start_station ORDER BY trips DESC

-- [pandas-describe]
SELECT count(distance_km) AS "count", avg(distance_km) AS "mean", stddev_samp(distance_km) AS "std", min(distance_km) AS "min",
       percentile_cont(0.25) WITHIN GROUP (ORDER BY distance_km) AS "25%", percentile_cont(0.5) WITHIN GROUP (ORDER BY distance_km) AS "50%",
       percentile_cont(0.75) WITHIN GROUP (ORDER BY distance_km) AS "75%", max(distance_km) AS "max"
FROM trips

-- [ibis-describe]
SELECT
  *
FROM (
  SELECT
    'price' AS "name",
    8 AS "pos",
    COUNT(*) AS "count",
    SUM(CAST("t0"."price" IS NULL AS INT)) AS "nulls",
    AVG(CAST("t0"."price" AS DOUBLE PRECISION)) AS "mean",
    STDDEV_SAMP(CAST("t0"."price" AS DOUBLE PRECISION)) AS "std",
    PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CAST("t0"."price" AS DOUBLE PRECISION)) AS "p50"
  FROM "trips" AS "t0"
  UNION ALL
  SELECT
    'distance_km' AS "name",
    7 AS "pos",
    COUNT(*) AS "count",
    SUM(CAST("t0"."distance_km" IS NULL AS INT)) AS "nulls",
    AVG(CAST("t0"."distance_km" AS DOUBLE PRECISION)) AS "mean",
    STDDEV_SAMP(CAST("t0"."distance_km" AS DOUBLE PRECISION)) AS "std",
    PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CAST("t0"."distance_km" AS DOUBLE PRECISION)) AS "p50"
  FROM "trips" AS "t0"
) AS "t1"
ORDER BY
  "t1"."pos" ASC

-- [ibis-value-counts]
SELECT
  "t1"."topic",
  "t1"."topic_count",
  CAST("t1"."topic_count" AS DOUBLE PRECISION) / SUM("t1"."topic_count") OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "share"
FROM (
  SELECT
    "t0"."topic",
    COUNT("t0"."topic") AS "topic_count"
  FROM "tickets" AS "t0"
  GROUP BY
    1
) AS "t1"
ORDER BY
  "t1"."topic_count" DESC NULLS LAST

-- [ibis-join-groupby]
WITH "t4" AS (
  SELECT
    "t2"."trip_id",
    "t2"."rider_id",
    "t2"."price",
    "t2"."distance_km",
    "t3"."district"
  FROM "trips" AS "t2"
  INNER JOIN "stations" AS "t3"
    ON "t2"."start_station" = "t3"."station_id"
  WHERE
    "t2"."distance_km" > CAST(1 AS SMALLINT)
), "t5" AS (
  SELECT
    "t4"."district",
    SUM("t4"."price") AS "revenue",
    SUM("t4"."price") / SUM("t4"."distance_km") AS "per_km",
    COUNT(DISTINCT "t4"."rider_id") AS "riders"
  FROM "t4"
  GROUP BY
    1
)
SELECT
  *
FROM "t5" AS "t6"
WHERE
  "t6"."riders" > CAST(100 AS SMALLINT)
ORDER BY
  "t6"."revenue" DESC
LIMIT 10

-- [ibis-topk-filter]
SELECT
  "t4"."end_station",
  COUNT(*) AS "n",
  AVG("t4"."distance_km") AS "mean_km"
FROM (
  SELECT
    *
  FROM "trips" AS "t0"
  WHERE
    EXISTS(
      SELECT
        1
      FROM (
        SELECT
          *
        FROM (
          SELECT
            "t0"."end_station",
            COUNT("t0"."end_station") AS "end_station_count"
          FROM "trips" AS "t0"
          GROUP BY
            1
        ) AS "t1"
        ORDER BY
          "t1"."end_station_count" DESC
        LIMIT 5
      ) AS "t2"
      WHERE
        "t0"."end_station" = "t2"."end_station"
    )
) AS "t4"
GROUP BY
  1

-- [ibis-crosstab]
SELECT
  "t0"."plan",
  COUNT(*) FILTER(WHERE "t0"."gender" = 'f') AS "f",
  COUNT(*) FILTER(WHERE "t0"."gender" = 'm') AS "m",
  COUNT(*) FILTER(WHERE "t0"."gender" IS NULL) AS "unknown",
  AVG("t0"."birth_year") FILTER(WHERE "t0"."gender" IN ('f', 'm')) AS "birth_year"
FROM "riders" AS "t0"
GROUP BY
  1

-- [ibis-corr]
SELECT
  "t0"."bike_kind",
  CORR(CAST("t0"."distance_km" AS DOUBLE PRECISION), CAST("t0"."price" AS DOUBLE PRECISION)) AS "r",
  VAR_SAMP(CAST("t0"."price" AS DOUBLE PRECISION)) AS "var",
  MODE() WITHIN GROUP (ORDER BY "t0"."start_station") AS "mode"
FROM "trips" AS "t0"
GROUP BY
  1

-- [dbplyr-count-decades]
SELECT "decade", COUNT(*) AS "n"
FROM (
  SELECT "riders".*, FLOOR("birth_year" / 10.0) * 10.0 AS "decade"
  FROM "riders"
  WHERE (NOT(("birth_year" IS NULL)))
) AS "q01"
GROUP BY "decade"
ORDER BY "n" DESC

-- [dbplyr-quantiles]
SELECT
  "plan",
  PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY "price") AS "q25",
  PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "price") AS "median",
  PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY "price") AS "q75",
  COUNT(*) AS "n"
FROM (
  SELECT "trips".*, "birth_year", "gender", "plan", "joined_on", "home_station"
  FROM "trips"
  LEFT JOIN "riders"
    ON ("trips"."rider_id" = "riders"."rider_id")
) AS "q01"
GROUP BY "plan"

-- [dbplyr-pivot-wider]
SELECT
  "weekday",
  MAX(CASE WHEN ("bike_kind" = 'city') THEN "n" END) AS "city",
  MAX(CASE WHEN ("bike_kind" = 'electric') THEN "n" END) AS "electric",
  MAX(CASE WHEN ("bike_kind" = 'cargo') THEN "n" END) AS "cargo"
FROM (
  SELECT "weekday", "bike_kind", COUNT(*) AS "n"
  FROM (
    SELECT "trips".*, EXTRACT('dow' FROM DATE("started_at") + 0) + 1 AS "weekday"
    FROM "trips"
  ) AS "q01"
  GROUP BY "weekday", "bike_kind"
) AS "q01"
GROUP BY "weekday"

-- [dbplyr-per-rider]
WITH "q01" AS (
  SELECT "rider_id", COUNT(*) AS "n", SUM("price") AS "spent", AVG("distance_km") AS "km"
  FROM "trips"
  GROUP BY "rider_id"
),
"q02" AS (
  SELECT "LHS".*, "plan", "gender"
  FROM "q01" AS "LHS"
  INNER JOIN "riders"
    ON ("LHS"."rider_id" = "riders"."rider_id")
)
SELECT "plan", COUNT(*) AS "riders", AVG("n") AS "trips", SUM("spent") AS "spent", AVG("km") AS "km",
  AVG(CASE WHEN ("n" > 20.0) THEN 1.0 WHEN NOT ("n" > 20.0) THEN 0.0 END) AS "often"
FROM "q02" AS "q01"
GROUP BY "plan"

-- [dbplyr-shares]
SELECT "q01".*, "n" / SUM("n") OVER (PARTITION BY "gender") AS "share", RANK() OVER (PARTITION BY "gender" ORDER BY "n" DESC) AS "place"
FROM (
  SELECT "gender", "plan", COUNT(*) AS "n"
  FROM "riders"
  WHERE ("joined_on" >= CAST('2023-01-01' AS DATE)) AND ("gender" IN ('f', 'm'))
  GROUP BY "gender", "plan"
) AS "q01"
