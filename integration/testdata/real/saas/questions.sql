-- [mrr-calendar]
WITH months AS (
  SELECT generate_series('2023-01-01'::timestamptz, '2023-12-01'::timestamptz, '1 month') AS month
)
SELECT m.month::date AS month,
       COUNT(s.id) AS active_subscriptions,
       COALESCE(SUM(s.mrr_cents), 0) / 100.0 AS mrr
FROM months m
LEFT JOIN subscriptions s
  ON s.started_at < m.month + INTERVAL '1 month'
 AND (s.canceled_at IS NULL OR s.canceled_at >= m.month + INTERVAL '1 month')
GROUP BY m.month
ORDER BY m.month;

-- [signups-by-source]
SELECT DATE_TRUNC('week', signed_up_at) AS week,
       COALESCE(source, 'direct') AS source,
       COUNT(*) AS signups
FROM users
WHERE signed_up_at >= '2023-10-01' AND NOT is_staff
GROUP BY 1, 2
ORDER BY 1 ASC, 3 DESC;

-- [daily-active]
SELECT occurred_at::date AS day,
       COUNT(DISTINCT user_id) AS dau,
       COUNT(*) AS events,
       ROUND(COUNT(*)::numeric / COUNT(DISTINCT user_id), 2) AS events_per_user
FROM events
WHERE occurred_at >= TIMESTAMP '2023-12-01' AND occurred_at < TIMESTAMP '2024-01-01'
GROUP BY 1
ORDER BY 1;

-- [stickiness]
WITH dau AS (
  SELECT DATE_TRUNC('month', day) AS month, AVG(users) AS avg_dau
  FROM (
    SELECT DATE_TRUNC('day', occurred_at) AS day, COUNT(DISTINCT user_id) AS users
    FROM events
    GROUP BY 1
  ) d
  GROUP BY 1
),
mau AS (
  SELECT DATE_TRUNC('month', occurred_at) AS month, COUNT(DISTINCT user_id) AS users
  FROM events
  GROUP BY 1
)
SELECT mau.month, mau.users AS mau, ROUND(dau.avg_dau / mau.users, 3) AS stickiness
FROM mau
JOIN dau ON dau.month = mau.month
ORDER BY mau.month;

-- [funnel]
SELECT COUNT(DISTINCT user_id) FILTER (WHERE name = 'signup') AS signed_up,
       COUNT(DISTINCT user_id) FILTER (WHERE name = 'create_project') AS created_project,
       COUNT(DISTINCT user_id) FILTER (WHERE name = 'invite') AS invited,
       COUNT(DISTINCT user_id) FILTER (WHERE name = 'upgrade') AS upgraded
FROM events
WHERE occurred_at BETWEEN '2023-01-01' AND '2023-06-30';

-- [funnel-in-order]
WITH steps AS (
  SELECT user_id,
         MIN(CASE WHEN name = 'signup' THEN occurred_at END) AS signup_at,
         MIN(CASE WHEN name = 'create_project' THEN occurred_at END) AS project_at,
         MIN(CASE WHEN name = 'upgrade' THEN occurred_at END) AS upgrade_at
  FROM events
  GROUP BY user_id
)
SELECT COUNT(signup_at) AS signups,
       SUM(CASE WHEN project_at > signup_at THEN 1 ELSE 0 END) AS projects,
       SUM(CASE WHEN project_at > signup_at AND upgrade_at > project_at THEN 1 ELSE 0 END) AS upgrades,
       AVG(EXTRACT(EPOCH FROM (upgrade_at - signup_at)) / 86400) AS days_to_upgrade
FROM steps;

-- [retention]
WITH cohort AS (
  SELECT id AS user_id, DATE_TRUNC('month', signed_up_at)::date AS cohort_month
  FROM users
)
SELECT c.cohort_month,
       (EXTRACT(YEAR FROM e.occurred_at) - EXTRACT(YEAR FROM c.cohort_month)) * 12
         + EXTRACT(MONTH FROM e.occurred_at) - EXTRACT(MONTH FROM c.cohort_month) AS month_no,
       COUNT(DISTINCT e.user_id) AS active
FROM events e
JOIN cohort c ON c.user_id = e.user_id
WHERE c.cohort_month >= '2023-07-01'
GROUP BY 1, 2
ORDER BY 1, 2;

-- [churn-by-plan]
SELECT plan,
       COUNT(*) AS subscriptions,
       COUNT(canceled_at) AS canceled,
       COUNT(canceled_at)::float / NULLIF(COUNT(*), 0) AS churn,
       AVG(COALESCE(canceled_at, '2024-01-01') - started_at) AS avg_lifetime
FROM subscriptions
GROUP BY plan;

-- [arpu]
SELECT TO_CHAR(i.issued_on, 'YYYY-MM') AS month,
       SUM(i.amount_cents) / 100.0 AS revenue,
       COUNT(DISTINCT s.user_id) AS payers,
       ROUND(SUM(i.amount_cents) / 100.0 / NULLIF(COUNT(DISTINCT s.user_id), 0), 2) AS arpu
FROM invoices i
JOIN subscriptions s ON s.id = i.subscription_id
WHERE i.status = 'paid'
GROUP BY 1
ORDER BY 1;

-- [invoice-aging]
SELECT CASE
         WHEN paid_at IS NOT NULL THEN 'paid'
         WHEN DATE '2024-01-15' - issued_on <= 30 THEN '0-30'
         WHEN DATE '2024-01-15' - issued_on <= 60 THEN '31-60'
         WHEN DATE '2024-01-15' - issued_on <= 90 THEN '61-90'
         ELSE '90+'
       END AS bucket,
       COUNT(*) AS invoices,
       SUM(amount_cents) / 100 AS amount
FROM invoices
GROUP BY bucket;

-- [days-to-pay]
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM paid_at - issued_on) / 86400) AS median_days,
       AVG(paid_at::date - issued_on) AS mean_days
FROM invoices
WHERE paid_at IS NOT NULL;

-- [conversion-by-country]
SELECT u.country,
       COUNT(DISTINCT u.id) AS users,
       COUNT(DISTINCT s.user_id) AS paying,
       ROUND(100.0 * COUNT(DISTINCT s.user_id) / COUNT(DISTINCT u.id), 1) AS conversion
FROM users u
LEFT JOIN subscriptions s ON s.user_id = u.id AND s.mrr_cents > 0
GROUP BY u.country
ORDER BY conversion DESC;

-- [cohort-ltv]
SELECT DATE_TRUNC('quarter', u.signed_up_at) AS cohort,
       COUNT(DISTINCT u.id) AS users,
       SUM(i.amount_cents) / 100.0 AS revenue,
       SUM(i.amount_cents) / 100.0 / COUNT(DISTINCT u.id) AS ltv
FROM users u
LEFT JOIN subscriptions s ON s.user_id = u.id
LEFT JOIN invoices i ON i.subscription_id = s.id AND i.status = 'paid'
GROUP BY 1
ORDER BY 1;

-- [sections]
SELECT SPLIT_PART(page, '/', 2) AS section, COUNT(*) AS views
FROM events
WHERE name = 'page_view'
GROUP BY 1
ORDER BY views DESC
LIMIT 10;

-- [cancel-reasons]
SELECT INITCAP(REPLACE(cancel_reason, '_', ' ')) AS reason,
       COUNT(*) AS n,
       ROUND(100 * COUNT(*)::numeric / SUM(COUNT(*)) OVER (), 1) AS share
FROM subscriptions
WHERE canceled_at IS NOT NULL
GROUP BY 1
ORDER BY n DESC;

-- [sessions]
WITH gaps AS (
  SELECT user_id, occurred_at,
         CASE WHEN occurred_at - LAG(occurred_at) OVER (PARTITION BY user_id ORDER BY occurred_at) < INTERVAL '30 minutes' THEN 0 ELSE 1 END AS is_new
  FROM events
)
SELECT DATE_TRUNC('month', occurred_at) AS month,
       SUM(is_new) AS sessions,
       COUNT(*) * 1.0 / NULLIF(SUM(is_new), 0) AS events_per_session
FROM gaps
GROUP BY 1
ORDER BY 1;

-- [load-time-p95]
SELECT device,
       COUNT(duration_ms) AS samples,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_ms,
       SUM((duration_ms > 3000)::int) * 100.0 / COUNT(duration_ms) AS slow_pct
FROM events
WHERE duration_ms IS NOT NULL
GROUP BY device;

-- [never-activated]
SELECT DATE_TRUNC('month', u.signed_up_at)::date AS month,
       COUNT(*) AS signups,
       SUM(CASE WHEN NOT EXISTS (
             SELECT 1 FROM events e
             WHERE e.user_id = u.id AND e.occurred_at < u.signed_up_at + INTERVAL '14 days'
           ) THEN 1 ELSE 0 END) AS never_activated
FROM users u
GROUP BY 1
ORDER BY 1;

-- [last-30-days]
SELECT name, COUNT(*) AS events, COUNT(DISTINCT user_id) AS users
FROM events
WHERE occurred_at > NOW() - INTERVAL '2000 days'
GROUP BY name
ORDER BY events DESC;
