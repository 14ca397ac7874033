-- [age-and-gender]
SELECT CASE
         WHEN EXTRACT(YEAR FROM AGE(DATE '2024-01-01', birth_date)) < 30 THEN 'under 30'
         WHEN EXTRACT(YEAR FROM AGE(DATE '2024-01-01', birth_date)) < 50 THEN '30-49'
         WHEN EXTRACT(YEAR FROM AGE(DATE '2024-01-01', birth_date)) < 65 THEN '50-64'
         ELSE '65+'
       END AS age_group,
       COUNT(*) FILTER (WHERE gender = 'F') AS women,
       COUNT(*) FILTER (WHERE gender = 'M') AS men,
       COUNT(*) FILTER (WHERE gender IS NULL) AS unknown
FROM clients
GROUP BY age_group
ORDER BY age_group;

-- [clients-by-region]
SELECT d.region,
       COUNT(c.id) AS clients,
       SUM(d.inhabitants) / COUNT(*) AS inhabitants,
       RANK() OVER (ORDER BY COUNT(c.id) DESC) AS place
FROM districts d
LEFT JOIN clients c ON c.district_id = d.id
GROUP BY d.region
ORDER BY place;

-- [loans-rollup]
SELECT EXTRACT(YEAR FROM granted_on) AS year,
       EXTRACT(QUARTER FROM granted_on) AS quarter,
       SUM(amount) AS total,
       AVG(amount) AS average,
       COUNT(*) AS loans
FROM loans
GROUP BY ROLLUP (EXTRACT(YEAR FROM granted_on), EXTRACT(QUARTER FROM granted_on))
ORDER BY 1 NULLS LAST, 2 NULLS LAST;

-- [status-share-by-duration]
SELECT months, status, COUNT(*) AS loans,
       COUNT(*)::numeric / SUM(COUNT(*)) OVER (PARTITION BY months) AS share
FROM loans
GROUP BY months, status
ORDER BY months, status;

-- [default-rate-by-region]
SELECT d.region,
       COUNT(*) AS loans,
       ROUND(AVG(CASE WHEN l.status IN ('B', 'D') THEN 100.0 ELSE 0 END), 2) AS default_pct
FROM loans l
JOIN accounts a ON a.id = l.account_id
JOIN clients c ON c.id = a.client_id
JOIN districts d ON d.id = c.district_id
GROUP BY d.region
HAVING COUNT(*) >= 20
ORDER BY default_pct DESC;

-- [loan-to-income]
SELECT d.region,
       AVG(l.amount / (12 * d.avg_salary)) AS loan_to_income,
       SUM(CASE WHEN l.payment > 0.4 * d.avg_salary THEN 1 ELSE 0 END) AS strained
FROM loans l
JOIN accounts a ON l.account_id = a.id
JOIN clients c ON a.client_id = c.id
JOIN districts d ON c.district_id = d.id
GROUP BY d.region;

-- [monthly-net-flow]
WITH flows AS (
  SELECT date_trunc('month', booked_at)::date AS month,
         SUM(CASE WHEN direction = 'credit' THEN amount ELSE -amount END) AS net
  FROM transactions
  GROUP BY 1
)
SELECT month, net, SUM(net) OVER (ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running
FROM flows
ORDER BY month;

-- [month-end-balance]
WITH month_end AS (
  SELECT DISTINCT ON (account_id, date_trunc('month', booked_at))
         account_id, date_trunc('month', booked_at) AS month, balance
  FROM transactions
  ORDER BY account_id, date_trunc('month', booked_at), booked_at DESC, id DESC
)
SELECT month::date, AVG(balance) AS avg_balance, COUNT(*) AS accounts
FROM month_end
GROUP BY month
ORDER BY month;

-- [last-balance-lateral]
SELECT a.currency, COUNT(*) AS accounts, AVG(t.balance) AS balance
FROM accounts a
LEFT JOIN LATERAL (
  SELECT balance
  FROM transactions
  WHERE account_id = a.id AND booked_at < '2023-07-01'
  ORDER BY booked_at DESC
  LIMIT 1
) t ON true
GROUP BY a.currency;

-- [rolling-30-days]
WITH rolling AS (
  SELECT account_id, booked_at,
         SUM(amount) OVER (PARTITION BY account_id ORDER BY booked_at RANGE BETWEEN INTERVAL '30 days' PRECEDING AND CURRENT ROW) AS spent_30d
  FROM transactions
  WHERE direction = 'debit'
)
SELECT date_trunc('month', booked_at)::date AS month, AVG(spent_30d) AS avg_spent_30d
FROM rolling
GROUP BY 1
ORDER BY 1;

-- [three-month-average]
WITH monthly AS (
  SELECT a.client_id, date_trunc('month', t.booked_at) AS month, SUM(t.amount) AS spent
  FROM transactions t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.direction = 'debit'
  GROUP BY a.client_id, date_trunc('month', t.booked_at)
),
smoothed AS (
  SELECT client_id, month, spent,
         AVG(spent) OVER (PARTITION BY client_id ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS avg_3m
  FROM monthly
)
SELECT month::date,
       COUNT(*) AS clients,
       SUM(CASE WHEN spent > 2 * avg_3m THEN 1 ELSE 0 END) AS spending_more
FROM smoothed
GROUP BY month
ORDER BY month;

-- [dormant-accounts]
SELECT a.frequency,
       COUNT(*) AS open_accounts,
       SUM(CASE WHEN NOT EXISTS (SELECT 1 FROM transactions t WHERE t.account_id = a.id AND t.booked_at >= DATE '2024-01-01' - INTERVAL '90 days') THEN 1 ELSE 0 END) AS dormant
FROM accounts a
WHERE a.closed_on IS NULL
GROUP BY a.frequency;

-- [regular-income]
WITH income AS (
  SELECT account_id, date_trunc('month', booked_at) AS month, MAX(amount) AS salary
  FROM transactions
  WHERE direction = 'credit'
  GROUP BY 1, 2
),
regular AS (
  SELECT account_id, COUNT(*) AS months, AVG(salary) AS salary
  FROM income
  GROUP BY account_id
  HAVING COUNT(*) >= 2 AND MAX(salary) - MIN(salary) < 1000
)
SELECT width_bucket(salary, 10000, 50000, 4) AS band, COUNT(*) AS accounts, AVG(months) AS months
FROM regular
GROUP BY 1
ORDER BY 1;

-- [rfm-segments]
WITH rfm AS (
  SELECT a.client_id,
         DATE '2024-01-01' - MAX(t.booked_at)::date AS recency,
         COUNT(*) AS frequency,
         SUM(t.amount) AS monetary
  FROM transactions t
  JOIN accounts a ON a.id = t.account_id
  GROUP BY a.client_id
),
scored AS (
  SELECT client_id,
         CASE WHEN recency <= 30 THEN 3 WHEN recency <= 90 THEN 2 ELSE 1 END AS r,
         CASE WHEN frequency >= 30 THEN 3 WHEN frequency >= 10 THEN 2 ELSE 1 END AS f,
         CASE WHEN monetary >= 200000 THEN 3 WHEN monetary >= 50000 THEN 2 ELSE 1 END AS m
  FROM rfm
)
SELECT r || '-' || f || '-' || m AS segment, COUNT(*) AS clients
FROM scored
GROUP BY 1
ORDER BY 2 DESC;

-- [rfm-quintiles]
WITH rfm AS (
  SELECT a.client_id, MAX(t.booked_at) AS last_booked, SUM(t.amount) AS monetary
  FROM transactions t
  JOIN accounts a ON a.id = t.account_id
  GROUP BY a.client_id
)
SELECT quintile, COUNT(*) AS clients, AVG(monetary) AS monetary
FROM (SELECT client_id, monetary, NTILE(5) OVER (ORDER BY monetary) AS quintile FROM rfm) q
GROUP BY quintile
ORDER BY quintile;

-- [card-penetration]
SELECT c.segment,
       COUNT(DISTINCT c.id) AS clients,
       COUNT(DISTINCT CASE WHEN k.id IS NOT NULL THEN c.id END) AS with_card,
       COUNT(DISTINCT CASE WHEN k.type = 'gold' THEN c.id END) * 100.0 / COUNT(DISTINCT c.id) AS gold_pct
FROM clients c
LEFT JOIN accounts a ON a.client_id = c.id
LEFT JOIN cards k ON k.account_id = a.id
GROUP BY c.segment;

-- [days-to-first-card]
WITH first_cards AS (
  SELECT account_id, MIN(issued_at) AS first_issued
  FROM cards
  GROUP BY account_id
)
SELECT EXTRACT(YEAR FROM a.opened_on)::int AS opened,
       COUNT(*) AS accounts,
       COUNT(f.first_issued) AS with_card,
       AVG(f.first_issued::date - a.opened_on) AS days_to_card,
       AVG(f.first_issued - a.opened_on) AS time_to_card
FROM accounts a
LEFT JOIN first_cards f ON f.account_id = a.id
GROUP BY 1
ORDER BY 1;

-- [purposes]
SELECT COALESCE(NULLIF(TRIM(purpose), ''), 'unknown') AS purpose,
       COUNT(*) AS bookings,
       SUM(amount) AS amount,
       ROUND(100.0 * SUM(amount) / SUM(SUM(amount)) OVER (), 1) AS share
FROM transactions
WHERE direction = 'debit'
GROUP BY 1
ORDER BY amount DESC;

-- [weekend-spending]
SELECT COALESCE(operation, 'other') AS operation,
       CASE WHEN EXTRACT(DOW FROM booked_at) IN (0, 6) THEN 'weekend' ELSE 'weekday' END AS day_type,
       AVG(amount) AS avg_amount,
       STDDEV(amount) AS spread,
       COUNT(*) AS bookings
FROM transactions
WHERE direction = 'debit' AND amount < 10000
GROUP BY 1, 2
ORDER BY 1, 2;

-- [cohort-of-accounts]
WITH firsts AS (
  SELECT account_id, MIN(date_trunc('month', booked_at)) AS cohort
  FROM transactions
  GROUP BY account_id
)
SELECT f.cohort::date,
       (DATE_PART('year', t.booked_at) - DATE_PART('year', f.cohort)) * 12 + DATE_PART('month', t.booked_at) - DATE_PART('month', f.cohort) AS month_no,
       COUNT(DISTINCT t.account_id) AS active_accounts
FROM transactions t
JOIN firsts f ON f.account_id = t.account_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- [unusual-amounts]
WITH scored AS (
  SELECT booked_at, amount, AVG(amount) OVER (PARTITION BY account_id, direction) AS usual
  FROM transactions
)
SELECT TO_CHAR(booked_at, 'YYYY-"Q"Q') AS quarter,
       COUNT(*) AS bookings,
       COUNT(*) FILTER (WHERE amount > 3 * usual) AS unusual,
       SUM(amount) FILTER (WHERE amount > 3 * usual) AS unusual_amount
FROM scored
GROUP BY 1
ORDER BY 1;

-- [turnover-in-euro]
SELECT r.month, ROUND(SUM(t.amount * r.rate), 2) AS turnover_eur
FROM transactions t
JOIN accounts a ON a.id = t.account_id
JOIN exchange_rates r ON r.currency = a.currency AND r.month = date_trunc('month', t.booked_at)
WHERE t.direction = 'credit'
GROUP BY r.month
ORDER BY r.month;

-- [product-sales]
WITH sales AS (
  SELECT 'account' AS product, opened_on AS sold_on FROM accounts
  UNION ALL
  SELECT 'card', issued_at::date FROM cards
  UNION ALL
  SELECT 'loan', granted_on FROM loans
)
SELECT date_trunc('year', sold_on)::date AS year,
       SUM(CASE WHEN product = 'account' THEN 1 ELSE 0 END) AS accounts,
       SUM(CASE WHEN product = 'card' THEN 1 ELSE 0 END) AS cards,
       SUM(CASE WHEN product = 'loan' THEN 1 ELSE 0 END) AS loans
FROM sales
GROUP BY 1
ORDER BY 1;

-- [products-per-client]
SELECT products, COUNT(*) AS clients
FROM (
  SELECT c.id,
         (SELECT COUNT(*) FROM accounts a WHERE a.client_id = c.id)
       + (SELECT COUNT(*) FROM loans l JOIN accounts a ON a.id = l.account_id WHERE a.client_id = c.id) AS products
  FROM clients c
) p
GROUP BY products
ORDER BY products;

-- [account-churn]
WITH months AS (
  SELECT generate_series(DATE '2023-01-01', DATE '2023-12-01', INTERVAL '1 month')::date AS month
)
SELECT m.month,
       COUNT(*) FILTER (WHERE a.closed_on IS NULL OR a.closed_on >= m.month) AS open_at_start,
       COUNT(*) FILTER (WHERE date_trunc('month', a.closed_on) = m.month) AS closed,
       ROUND(100.0 * COUNT(*) FILTER (WHERE date_trunc('month', a.closed_on) = m.month)
             / NULLIF(COUNT(*) FILTER (WHERE a.closed_on IS NULL OR a.closed_on >= m.month), 0), 2) AS churn_pct
FROM months m
JOIN accounts a ON a.opened_on < m.month
GROUP BY m.month
ORDER BY m.month;
