-- [metabase-sunday-weeks]
SELECT
  (
    CAST(
      DATE_TRUNC('week', ("public"."users"."signed_up_at" + INTERVAL '1 day')) AS timestamp
    ) + INTERVAL '-1 day'
  ) AS "signed_up_at",
  COUNT(*) AS "count"
FROM
  "public"."users"
GROUP BY
  (
    CAST(
      DATE_TRUNC('week', ("public"."users"."signed_up_at" + INTERVAL '1 day')) AS timestamp
    ) + INTERVAL '-1 day'
  )
ORDER BY
  (
    CAST(
      DATE_TRUNC('week', ("public"."users"."signed_up_at" + INTERVAL '1 day')) AS timestamp
    ) + INTERVAL '-1 day'
  ) ASC

-- [metabase-hour-and-weekday]
SELECT
  CAST(extract(hour from "public"."events"."occurred_at") AS integer) AS "occurred_at",
  (CAST(extract(dow from "public"."events"."occurred_at") AS integer) + 1) AS "occurred_at_2",
  COUNT(*) AS "count"
FROM
  "public"."events"
WHERE
  "public"."events"."name" = 'page_view'
GROUP BY
  CAST(extract(hour from "public"."events"."occurred_at") AS integer),
  (CAST(extract(dow from "public"."events"."occurred_at") AS integer) + 1)
ORDER BY
  CAST(extract(hour from "public"."events"."occurred_at") AS integer) ASC,
  (CAST(extract(dow from "public"."events"."occurred_at") AS integer) + 1) ASC

-- [metabase-bins]
SELECT
  (FLOOR(("public"."events"."duration_ms" - 0.0) / 500.0) * 500.0) + 0.0 AS "duration_ms",
  COUNT(*) AS "count"
FROM
  "public"."events"
WHERE
  "public"."events"."duration_ms" IS NOT NULL
GROUP BY
  (FLOOR(("public"."events"."duration_ms" - 0.0) / 500.0) * 500.0) + 0.0
ORDER BY
  (FLOOR(("public"."events"."duration_ms" - 0.0) / 500.0) * 500.0) + 0.0 ASC

-- [metabase-custom-column]
SELECT
  "source"."Size" AS "Size",
  COUNT(*) AS "count",
  SUM("source"."mrr_cents") AS "sum",
  AVG("source"."mrr_cents") AS "avg"
FROM
  (
    SELECT
      "public"."subscriptions"."id" AS "id",
      "public"."subscriptions"."user_id" AS "user_id",
      "public"."subscriptions"."plan" AS "plan",
      "public"."subscriptions"."mrr_cents" AS "mrr_cents",
      "public"."subscriptions"."started_at" AS "started_at",
      "public"."subscriptions"."canceled_at" AS "canceled_at",
      CASE
        WHEN "public"."subscriptions"."mrr_cents" >= 2900 THEN 'large'
        WHEN "public"."subscriptions"."mrr_cents" > 0 THEN 'small'
        ELSE 'free'
      END AS "Size"
    FROM
      "public"."subscriptions"
  ) AS "source"
WHERE
  "source"."canceled_at" IS NULL
GROUP BY
  "source"."Size"
ORDER BY
  "sum" DESC,
  "source"."Size" ASC

-- [metabase-share]
SELECT
  DATE_TRUNC('month', "public"."invoices"."issued_on") AS "issued_on",
  CAST(
    SUM(CASE WHEN "public"."invoices"."status" = 'paid' THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION
  ) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share"
FROM
  "public"."invoices"
GROUP BY
  DATE_TRUNC('month', "public"."invoices"."issued_on")
ORDER BY
  DATE_TRUNC('month', "public"."invoices"."issued_on") ASC

-- [metabase-joined]
SELECT
  "Users - User"."country" AS "Users - User__country",
  CAST(extract(quarter from "public"."subscriptions"."started_at") AS integer) AS "started_at",
  COUNT(DISTINCT "public"."subscriptions"."user_id") AS "count",
  SUM(CASE WHEN "public"."subscriptions"."canceled_at" IS NULL THEN "public"."subscriptions"."mrr_cents" ELSE 0.0 END) AS "sum-where"
FROM
  "public"."subscriptions"
LEFT JOIN "public"."users" AS "Users - User" ON "public"."subscriptions"."user_id" = "Users - User"."id"
WHERE
  ("Users - User"."is_staff" = FALSE)
  AND (
    "public"."subscriptions"."started_at" >= timestamp with time zone '2023-01-01 00:00:00.000Z'
  )
  AND (
    "public"."subscriptions"."started_at" < timestamp with time zone '2024-01-01 00:00:00.000Z'
  )
GROUP BY
  "Users - User"."country",
  CAST(extract(quarter from "public"."subscriptions"."started_at") AS integer)
ORDER BY
  "Users - User"."country" ASC,
  CAST(extract(quarter from "public"."subscriptions"."started_at") AS integer) ASC

-- [metabase-filter-after-summary]
SELECT
  "source"."page" AS "page",
  "source"."count" AS "count",
  "source"."count_2" AS "count_2"
FROM
  (
    SELECT
      "public"."events"."page" AS "page",
      COUNT(*) AS "count",
      COUNT(DISTINCT "public"."events"."user_id") AS "count_2"
    FROM
      "public"."events"
    GROUP BY
      "public"."events"."page"
    ORDER BY
      "count" DESC,
      "public"."events"."page" ASC
  ) AS "source"
WHERE
  "source"."count" > 100
LIMIT
  2000

-- [metabase-week-of-year]
SELECT
  CAST(
    CEIL(
      (
        CAST(
          extract(
            doy
            from
              (
                CAST(
                  DATE_TRUNC('week', ("public"."users"."signed_up_at" + INTERVAL '1 day')) AS timestamp
                ) + INTERVAL '-1 day'
              )
          ) AS integer
        ) / 7.0
      )
    ) AS integer
  ) AS "signed_up_at",
  COUNT(*) AS "count"
FROM
  "public"."users"
GROUP BY
  1
ORDER BY
  1 ASC

-- [superset-series-limit]
SELECT DATE_TRUNC('month', occurred_at) AS occurred_at,
       page AS page,
       COUNT(*) AS count
FROM public.events
JOIN
  (SELECT page AS page__,
          COUNT(*) AS mme_inner__
   FROM public.events
   WHERE occurred_at >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
     AND occurred_at < TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
   GROUP BY page
   ORDER BY mme_inner__ DESC
   LIMIT 3) AS series_limit ON page = page__
WHERE occurred_at >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND occurred_at < TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('month', occurred_at),
         page
ORDER BY count DESC
LIMIT 10000

-- [superset-virtual-dataset]
SELECT DATE_TRUNC('quarter', issued_on) AS issued_on,
       plan AS plan,
       SUM(amount_cents) / 100.0 AS "Revenue"
FROM
  (SELECT i.issued_on,
          i.amount_cents,
          i.status,
          s.plan
   FROM invoices i
   JOIN subscriptions s ON s.id = i.subscription_id) AS virtual_table
WHERE status IN ('paid')
  AND issued_on >= TO_DATE('2023-01-01', 'YYYY-MM-DD')
  AND issued_on < TO_DATE('2024-01-01', 'YYYY-MM-DD')
GROUP BY DATE_TRUNC('quarter', issued_on),
         plan
ORDER BY "Revenue" DESC
LIMIT 50000

-- [superset-big-number]
SELECT COUNT(DISTINCT user_id) AS "COUNT_DISTINCT(user_id)",
       AVG(duration_ms) AS "AVG(duration_ms)"
FROM public.events
WHERE occurred_at >= TO_TIMESTAMP('2023-10-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND occurred_at < TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND ((device IS NOT NULL))
LIMIT 50000

-- [superset-table]
SELECT source AS source,
       country AS country,
       COUNT(*) AS count,
       (SUM(CASE WHEN is_staff THEN 0 ELSE 1 END)::float / NULLIF(COUNT(*), 0)) * 100 AS "% customers"
FROM public.users
WHERE country IN ('US', 'DE', 'GB')
GROUP BY source,
         country
HAVING ((COUNT(*) > 100))
ORDER BY count DESC
LIMIT 1000

-- [superset-filter-values]
SELECT device AS device
FROM public.events
WHERE (device IS NOT NULL)
GROUP BY device
ORDER BY device ASC
LIMIT 1000

-- [tableau-row-count]
SELECT SUM(1) AS "cnt:users:ok"
FROM "public"."users" "users"
HAVING (COUNT(1) > 0)

-- [tableau-weeks]
SELECT (CAST(DATE_TRUNC('DAY', CAST("events"."occurred_at" AS TIMESTAMP)) AS DATE) - (((7 + CAST(EXTRACT(DOW FROM "events"."occurred_at") AS BIGINT) - 1) % 7) * INTERVAL '1 DAY')) AS "twk:occurred_at:ok",
  COUNT(DISTINCT "events"."user_id") AS "ctd:user_id:ok"
FROM "public"."events" "events"
WHERE (("events"."occurred_at" >= (TIMESTAMP '2023-07-01 00:00:00.000')) AND ("events"."occurred_at" < (TIMESTAMP '2023-10-01 00:00:00.000')))
GROUP BY 1

-- [tableau-custom-sql]
SELECT CAST(EXTRACT(YEAR FROM "Custom SQL Query"."paid_at") AS INTEGER) AS "yr:paid_at:ok",
  CAST(TRUNC(EXTRACT(QUARTER FROM "Custom SQL Query"."paid_at")) AS INTEGER) AS "qr:paid_at:ok",
  AVG(CAST("Custom SQL Query"."amount_cents" AS DOUBLE PRECISION)) AS "avg:amount_cents:ok",
  SUM((CASE WHEN (("Custom SQL Query"."paid_at" - CAST("Custom SQL Query"."issued_on" AS TIMESTAMP)) > INTERVAL '14 DAY') THEN 1 WHEN NOT (("Custom SQL Query"."paid_at" - CAST("Custom SQL Query"."issued_on" AS TIMESTAMP)) > INTERVAL '14 DAY') THEN 0 ELSE NULL END)) AS "sum:Late:ok"
FROM (
  select id, issued_on, paid_at, amount_cents from invoices where status = 'paid'
) "Custom SQL Query"
WHERE ((CASE WHEN ("Custom SQL Query"."paid_at" IS NULL) THEN FALSE ELSE TRUE END) AND ("Custom SQL Query"."amount_cents" >= 0))
GROUP BY 1,
  2

-- [tableau-top-n]
SELECT "events"."page" AS "page",
  "events"."device" AS "device",
  SUM("events"."duration_ms") AS "sum:duration_ms:ok"
FROM "public"."events" "events"
  INNER JOIN (
  SELECT "events"."page" AS "page",
    SUM("events"."duration_ms") AS "$__alias__0"
  FROM "public"."events" "events"
  GROUP BY 1
  ORDER BY 2 DESC,
    1 ASC
  LIMIT 3
) "t0" ON ("events"."page" = "t0"."page")
GROUP BY 1,
  2

-- [tableau-fixed-lod]
SELECT "t0"."country" AS "country",
  AVG(CAST("t0"."__measure__0" AS DOUBLE PRECISION)) AS "avg:Events a user:ok"
FROM (
  SELECT "events"."user_id" AS "user_id",
    "users"."country" AS "country",
    COUNT(1) AS "__measure__0"
  FROM "public"."events" "events"
    INNER JOIN "public"."users" "users" ON ("events"."user_id" = "users"."id")
  GROUP BY 1,
    2
) "t0"
GROUP BY 1

-- [looker-months]
SELECT
    (TO_CHAR(DATE_TRUNC('month', users."signed_up_at" ), 'YYYY-MM')) AS "users.signed_up_month",
    COUNT(DISTINCT users.id ) AS "users.count",
    COALESCE(SUM(subscriptions."mrr_cents" ), 0) AS "subscriptions.total_mrr",
    COUNT(CASE WHEN (subscriptions."canceled_at" IS NOT NULL) THEN 1 ELSE NULL END) AS "subscriptions.canceled"
FROM "public"."users"  AS users
LEFT JOIN "public"."subscriptions"  AS subscriptions ON users."id" = subscriptions."user_id"
GROUP BY
    (DATE_TRUNC('month', users."signed_up_at" ))
ORDER BY
    1 DESC
FETCH NEXT 500 ROWS ONLY

-- [looker-tiers]
SELECT
    CASE
WHEN invoices."amount_cents"  < 900 THEN '0'
WHEN invoices."amount_cents"  >= 900 AND invoices."amount_cents"  < 2900 THEN '1'
WHEN invoices."amount_cents"  >= 2900 THEN '2'
ELSE '3'
END AS "invoices.amount_tier__sort_",
    CASE
WHEN invoices."amount_cents"  < 900 THEN 'Below 900'
WHEN invoices."amount_cents"  >= 900 AND invoices."amount_cents"  < 2900 THEN '900 to 2899'
WHEN invoices."amount_cents"  >= 2900 THEN '2900 or Above'
ELSE 'Undefined'
END AS "invoices.amount_tier",
    COUNT(*) AS "invoices.count"
FROM "public"."invoices" AS invoices
GROUP BY
    1,
    2
ORDER BY
    1
FETCH NEXT 500 ROWS ONLY

-- [looker-filtered-measures]
SELECT
    events."device"  AS "events.device",
        (DATE(events."occurred_at" )) AS "events.occurred_date",
    COUNT(*) AS "events.count",
    COUNT(DISTINCT CASE WHEN events."name" = 'upgrade' THEN events."user_id"  ELSE NULL END) AS "events.upgrading_users",
    1.0 * COUNT(CASE WHEN events."name" = 'invite' THEN 1 ELSE NULL END) / NULLIF(COUNT(*), 0) AS "events.invite_rate"
FROM "public"."events" AS events
WHERE ((( events."occurred_at"  ) >= ((SELECT TIMESTAMP '2023-06-01')) AND ( events."occurred_at"  ) < ((SELECT (TIMESTAMP '2023-06-01' + (1 || ' month')::INTERVAL))))) AND (events."device" ) IS NOT NULL AND 1=1
GROUP BY
    1,
    2
HAVING (COUNT(*)) > 20
ORDER BY
    2 DESC,
    1
LIMIT 500

-- [powerbi-direct-query]
select "_"."plan",
    "_"."a0",
    "_"."a1"
from
(
    select "rows"."plan" as "plan",
        sum(cast("rows"."mrr_cents" as decimal)) as "a0",
        count(1) as "a1"
    from
    (
        select "$Outer"."user_id",
            "$Outer"."plan",
            "$Outer"."mrr_cents",
            "$Inner"."country"
        from "public"."subscriptions" "$Outer"
        left outer join
        (
            select "_"."id" as "id2",
                "_"."country" as "country"
            from "public"."users" "_"
        ) "$Inner" on ("$Outer"."user_id" = "$Inner"."id2")
        where "$Inner"."country" in ('US', 'GB')
    ) "rows"
    group by "plan"
) "_"
where not "_"."a0" is null
limit 1000001

-- [grafana-time-group]
SELECT
  floor(extract(epoch from "occurred_at")/21600)*21600 AS "time",
  device AS "metric",
  count(*) AS "value"
FROM events
WHERE
  "occurred_at" BETWEEN '2023-06-01T00:00:00Z' AND '2023-06-08T00:00:00Z' AND
  device IN ('desktop','mobile')
GROUP BY 1, 2
ORDER BY 1

-- [redash-parameters]
WITH first_paid AS (
  SELECT s.user_id, min(i.paid_at) AS paid_at
  FROM invoices i
  JOIN subscriptions s ON s.id = i.subscription_id
  WHERE i.status = 'paid'
  GROUP BY s.user_id
)
SELECT date_trunc('month', u.signed_up_at)::date AS "Signed up",
       coalesce(u.source, '(none)') AS "source::filter",
       count(*) AS users,
       count(f.user_id) AS paying,
       round(100.0 * count(f.user_id) / nullif(count(*), 0), 1) AS "Paying, %"
FROM users u
LEFT JOIN first_paid f ON f.user_id = u.id AND f.paid_at < u.signed_up_at + interval '60 days'
WHERE u.signed_up_at >= '2023-01-01' AND u.signed_up_at <= '2023-06-30 23:59:59' AND NOT u.is_staff
GROUP BY 1, 2
ORDER BY 1, 2
