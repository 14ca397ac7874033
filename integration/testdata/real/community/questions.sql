-- [signups-growth]
WITH monthly AS (
  SELECT date_trunc('month', created_at)::date AS month, COUNT(*) AS signups
  FROM members
  GROUP BY 1
)
SELECT month,
       signups,
       SUM(signups) OVER (ORDER BY month) AS members_so_far,
       ROUND(100.0 * (signups - LAG(signups) OVER (ORDER BY month)) / NULLIF(LAG(signups) OVER (ORDER BY month), 0), 1) AS growth_pct
FROM monthly
ORDER BY month;

-- [rolling-active-members]
SELECT d.day::date AS day,
       COUNT(DISTINCT v.member_id) AS active_7d
FROM generate_series('2024-03-01'::date, '2024-03-31'::date, interval '1 day') AS d(day)
LEFT JOIN visits v
  ON v.visited_on BETWEEN d.day::date - 6 AND d.day::date
GROUP BY d.day
ORDER BY d.day;

-- [active-days-spined]
WITH member_days AS (
  SELECT m.id AS member_id, d.day::date AS day
  FROM members m
  CROSS JOIN generate_series('2024-03-01'::date, '2024-03-28'::date, interval '1 day') AS d(day)
),
flags AS (
  SELECT md.member_id, md.day,
         CASE WHEN v.member_id IS NOT NULL THEN 1 ELSE 0 END AS is_active,
         MAX(CASE WHEN v.member_id IS NOT NULL THEN 1 ELSE 0 END)
           OVER (PARTITION BY md.member_id ORDER BY md.day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS is_active_last_7_days
  FROM member_days md
  LEFT JOIN visits v ON v.member_id = md.member_id AND v.visited_on = md.day
)
SELECT day, SUM(is_active) AS dau, SUM(is_active_last_7_days) AS wau
FROM flags
GROUP BY day
ORDER BY day;

-- [weekly-retention]
WITH first_visits AS (
  SELECT member_id, MIN(visited_on) AS first_visit
  FROM visits
  GROUP BY member_id
)
SELECT date_trunc('week', f.first_visit)::date AS cohort,
       (v.visited_on - f.first_visit) / 7 AS week_no,
       COUNT(DISTINCT v.member_id) AS members
FROM visits v
JOIN first_visits f ON f.member_id = v.member_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- [day-7-retention]
SELECT COUNT(DISTINCT f.member_id) AS members,
       COUNT(DISTINCT d1.member_id)::numeric / COUNT(DISTINCT f.member_id) AS day_1,
       COUNT(DISTINCT d7.member_id)::numeric / COUNT(DISTINCT f.member_id) AS day_7
FROM (SELECT member_id, MIN(visited_on) AS first_day FROM visits GROUP BY member_id) f
LEFT JOIN visits d1 ON d1.member_id = f.member_id AND d1.visited_on = f.first_day + 1
LEFT JOIN visits d7 ON d7.member_id = f.member_id AND d7.visited_on = f.first_day + 7;

-- [visit-streaks]
WITH numbered AS (
  SELECT member_id, visited_on,
         visited_on - (ROW_NUMBER() OVER (PARTITION BY member_id ORDER BY visited_on))::int AS island
  FROM visits
),
streaks AS (
  SELECT member_id, island, COUNT(*) AS days
  FROM numbered
  GROUP BY member_id, island
),
longest AS (
  SELECT member_id, MAX(days) AS longest_streak
  FROM streaks
  GROUP BY member_id
)
SELECT CASE WHEN longest_streak >= 30 THEN '30+'
            WHEN longest_streak >= 7 THEN '7-29'
            WHEN longest_streak >= 3 THEN '3-6'
            ELSE '1-2' END AS bucket,
       COUNT(*) AS members
FROM longest
GROUP BY 1
ORDER BY 2 DESC;

-- [answer-rate]
SELECT c.name AS category,
       COUNT(*) AS questions,
       COUNT(p.first_answer_at) AS answered,
       ROUND(100.0 * COUNT(p.first_answer_at) / COUNT(*), 1) AS answer_rate
FROM posts p
JOIN categories c ON c.id = p.category_id
WHERE p.kind = 'question' AND NOT c.is_archived
GROUP BY c.name
HAVING COUNT(*) > 50
ORDER BY answer_rate DESC;

-- [hours-to-first-answer]
SELECT percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM (first_answer_at - created_at)) / 3600.0) AS hours
FROM posts
WHERE kind = 'question' AND first_answer_at >= created_at;

-- [first-answer-from-posts]
WITH answers AS (
  SELECT q.id, q.created_at, MIN(a.created_at) AS answered_at
  FROM posts q
  JOIN posts a ON a.parent_id = q.id AND a.kind = 'answer'
  WHERE q.kind = 'question'
  GROUP BY q.id, q.created_at
)
SELECT date_trunc('month', created_at) AS month,
       AVG(EXTRACT(EPOCH FROM answered_at - created_at) / 60) AS minutes
FROM answers
GROUP BY 1
ORDER BY 1;

-- [backlog-age]
SELECT CASE
         WHEN AGE('2024-04-01'::timestamptz, created_at) < INTERVAL '7 days' THEN '1: this week'
         WHEN AGE('2024-04-01'::timestamptz, created_at) < INTERVAL '1 month' THEN '2: this month'
         ELSE '3: older'
       END AS age_bucket,
       COUNT(*) FILTER (WHERE views >= 500) AS popular,
       COUNT(*) AS unanswered
FROM posts
WHERE kind = 'question' AND first_answer_at IS NULL AND closed_reason IS NULL
GROUP BY age_bucket
ORDER BY age_bucket;

-- [posts-by-weekday-and-hour]
SELECT to_char(created_at AT TIME ZONE 'UTC', 'Dy') AS weekday,
       EXTRACT(HOUR FROM created_at AT TIME ZONE 'UTC')::int AS hour,
       COUNT(*) AS posts
FROM posts
GROUP BY 1, 2
ORDER BY 1, 2;

-- [category-by-weekday]
SELECT c.name,
       SUM(CASE WHEN EXTRACT(ISODOW FROM p.created_at) < 6 THEN 1 ELSE 0 END) AS weekdays,
       SUM(CASE WHEN EXTRACT(ISODOW FROM p.created_at) >= 6 THEN 1 ELSE 0 END) AS weekend,
       COUNT(DISTINCT p.member_id) AS authors
FROM posts p
LEFT JOIN categories c ON p.category_id = c.id
GROUP BY c.name
ORDER BY COUNT(*) DESC;

-- [top-tags]
SELECT pt.tag,
       COUNT(*) AS questions,
       ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2) AS share,
       DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS place
FROM post_tags pt
JOIN posts p ON p.id = pt.post_id
JOIN tags t ON t.name = pt.tag AND NOT t.is_required
WHERE p.created_at >= '2024-01-01'
GROUP BY pt.tag
ORDER BY questions DESC
LIMIT 5;

-- [tag-trend]
WITH per_month AS (
  SELECT date_trunc('month', p.created_at)::date AS month, pt.tag, COUNT(DISTINCT p.id) AS n
  FROM posts p
  INNER JOIN post_tags pt ON pt.post_id = p.id
  GROUP BY 1, 2
)
SELECT month, tag, n,
       n - LAG(n, 1, 0::bigint) OVER (PARTITION BY tag ORDER BY month) AS change,
       FIRST_VALUE(tag) OVER (PARTITION BY month ORDER BY n DESC) AS leader
FROM per_month
ORDER BY tag, month;

-- [tags-of-arrays]
SELECT t.tag, COUNT(*) AS posts
FROM posts p
CROSS JOIN LATERAL unnest(p.tags) AS t(tag)
GROUP BY t.tag
ORDER BY posts DESC;

-- [theme-preference]
SELECT preferences ->> 'theme' AS theme, COUNT(*) AS members
FROM members
GROUP BY 1;

-- [acceptance-by-trust]
SELECT m.trust_level,
       COUNT(*) AS answers,
       AVG(p.is_accepted::int) AS acceptance,
       AVG(CASE WHEN p.is_accepted THEN p.score END) AS score_of_accepted
FROM posts p
JOIN members m ON m.id = p.member_id
WHERE p.kind = 'answer' AND NOT m.is_moderator
GROUP BY m.trust_level
ORDER BY m.trust_level;

-- [contributor-pyramid]
WITH counts AS (
  SELECT m.id, COUNT(p.id) AS posts
  FROM members m
  LEFT JOIN posts p ON p.member_id = m.id
  GROUP BY m.id
)
SELECT CASE WHEN posts = 0 THEN 'lurker'
            WHEN posts = 1 THEN 'one post'
            WHEN posts BETWEEN 2 AND 9 THEN 'occasional'
            ELSE 'regular' END AS segment,
       COUNT(*) AS members,
       SUM(posts) AS posts,
       ROUND(100 * SUM(posts) / SUM(SUM(posts)) OVER (), 1) AS share_of_posts
FROM counts
GROUP BY segment;

-- [top-percent]
WITH ranked AS (
  SELECT member_id, COUNT(*) AS posts, NTILE(100) OVER (ORDER BY COUNT(*) DESC) AS percentile
  FROM posts
  GROUP BY member_id
)
SELECT SUM(posts) FILTER (WHERE percentile = 1)::numeric / SUM(posts) AS share_of_top_percent
FROM ranked;

-- [new-and-returning-posters]
WITH firsts AS (
  SELECT member_id, date_trunc('month', MIN(created_at)) AS first_month
  FROM posts
  GROUP BY member_id
)
SELECT date_trunc('month', p.created_at)::date AS month,
       COUNT(DISTINCT p.member_id) FILTER (WHERE f.first_month = date_trunc('month', p.created_at)) AS new_posters,
       COUNT(DISTINCT p.member_id) FILTER (WHERE f.first_month < date_trunc('month', p.created_at)) AS returning_posters
FROM posts p
JOIN firsts f USING (member_id)
GROUP BY 1
ORDER BY 1;

-- [first-badge-of-class]
SELECT t.class,
       COUNT(*) AS members,
       AVG(b.awarded_at::date - m.created_at::date) AS days_to_first
FROM (
  SELECT DISTINCT ON (x.member_id, y.class) x.member_id, y.class, x.awarded_at
  FROM badges x
  JOIN badge_types y ON y.code = x.badge
  ORDER BY x.member_id, y.class, x.awarded_at
) b
JOIN members m ON m.id = b.member_id
JOIN (SELECT DISTINCT class FROM badge_types) t ON t.class = b.class
GROUP BY t.class;

-- [votes-by-trust]
SELECT m.trust_level,
       COUNT(*) AS votes,
       SUM(CASE v.value WHEN -1 THEN 1 ELSE 0 END) AS downvotes,
       1.0 * SUM(CASE v.value WHEN -1 THEN 1 ELSE 0 END) / COUNT(*) AS down_share,
       COUNT(*)::float / COUNT(DISTINCT v.member_id) AS votes_per_voter
FROM votes v
INNER JOIN members AS m ON v.member_id = m.id
GROUP BY 1
HAVING COUNT(DISTINCT v.member_id) >= 20
ORDER BY 1;

-- [lurkers-of-march]
SELECT m.trust_level, COUNT(DISTINCT m.id) AS lurkers
FROM members m
JOIN visits v ON v.member_id = m.id AND v.visited_on >= '2024-03-01'
LEFT JOIN posts p ON p.member_id = m.id AND p.created_at >= '2024-03-01'
WHERE p.id IS NULL
GROUP BY m.trust_level;

-- [dau-moving-average]
SELECT visited_on,
       COUNT(*) AS dau,
       ROUND(AVG(COUNT(*)) OVER (ORDER BY visited_on ROWS BETWEEN 6 PRECEDING AND CURRENT ROW), 1) AS dau_7d_avg,
       SUM(seconds) / 60 AS minutes
FROM visits
GROUP BY visited_on
ORDER BY visited_on;

-- [gap-between-posts]
WITH gaps AS (
  SELECT member_id, kind, created_at,
         EXTRACT(EPOCH FROM created_at - LAG(created_at) OVER (PARTITION BY member_id ORDER BY created_at)) / 86400 AS days_since
  FROM posts
)
SELECT kind,
       AVG(days_since) AS mean_days,
       COUNT(*) FILTER (WHERE days_since <= 7) AS within_a_week,
       COUNT(*) FILTER (WHERE days_since IS NULL) AS first_posts
FROM gaps
GROUP BY kind;
