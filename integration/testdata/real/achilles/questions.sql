-- [persons]
SELECT count(DISTINCT person_id) AS persons FROM person;

-- [persons-by-gender]
SELECT p.gender_concept_id, c.concept_name AS gender, count(*) AS persons
FROM person p
JOIN concept c ON c.concept_id = p.gender_concept_id
GROUP BY p.gender_concept_id, c.concept_name
ORDER BY persons DESC;

-- [year-of-birth]
SELECT year_of_birth, count(DISTINCT person_id) AS persons
FROM person
GROUP BY year_of_birth
ORDER BY year_of_birth;

-- [race-and-ethnicity]
SELECT coalesce(r.concept_name, 'unknown') AS race, coalesce(e.concept_name, 'unknown') AS ethnicity, count(*) AS persons
FROM person p
LEFT JOIN concept r ON r.concept_id = p.race_concept_id
LEFT JOIN concept e ON e.concept_id = p.ethnicity_concept_id
GROUP BY 1, 2;

-- [year-of-birth-and-gender]
SELECT year_of_birth::varchar AS stratum_1, gender_concept_id::varchar AS stratum_2, count(DISTINCT person_id) AS count_value
FROM person
GROUP BY year_of_birth, gender_concept_id;

-- [state-of-residence]
SELECT l.state, count(DISTINCT p.person_id) AS persons
FROM person p
LEFT JOIN location l ON l.location_id = p.location_id
GROUP BY l.state;

-- [never-observed]
SELECT count(p.person_id) AS persons
FROM person p
LEFT JOIN observation_period op ON op.person_id = p.person_id
WHERE op.person_id IS NULL;

-- [age-at-first-observation]
WITH first_observation AS (
  SELECT person_id, min(extract(year FROM observation_period_start_date)) AS start_year
  FROM observation_period
  GROUP BY person_id
)
SELECT f.start_year - p.year_of_birth AS age, p.gender_concept_id, count(*) AS persons
FROM person p
JOIN first_observation f ON f.person_id = p.person_id
GROUP BY 1, 2
ORDER BY 1, 2;

-- [distribution-of-age-at-first-observation]
WITH raw AS (
  SELECT p.person_id, p.gender_concept_id, min(extract(year FROM op.observation_period_start_date))::int - p.year_of_birth AS age
  FROM person p
  JOIN observation_period op ON op.person_id = p.person_id
  GROUP BY p.person_id, p.gender_concept_id, p.year_of_birth
)
SELECT gender_concept_id,
       count(*) AS count_value,
       min(age) AS min_value,
       max(age) AS max_value,
       round(avg(age), 2) AS avg_value,
       round(stddev(age), 2) AS stdev_value,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS median_value,
       percentile_disc(0.1) WITHIN GROUP (ORDER BY age) AS p10_value,
       percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS p25_value,
       percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS p75_value,
       percentile_disc(0.9) WITHIN GROUP (ORDER BY age) AS p90_value
FROM raw
GROUP BY gender_concept_id;

-- [length-of-first-observation]
WITH periods AS (
  SELECT person_id,
         observation_period_end_date - observation_period_start_date AS days,
         row_number() OVER (PARTITION BY person_id ORDER BY observation_period_start_date) AS rn
  FROM observation_period
)
SELECT count(*) AS persons, min(days), max(days), avg(days), stddev(days),
       percentile_cont(ARRAY[0.1, 0.25, 0.5, 0.75, 0.9]) WITHIN GROUP (ORDER BY days) AS deciles
FROM periods
WHERE rn = 1;

-- [length-of-observation-by-gender]
SELECT p.gender_concept_id,
       avg(op.observation_period_end_date - op.observation_period_start_date) AS avg_days,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY op.observation_period_end_date - op.observation_period_start_date) AS median_days
FROM person p
JOIN (
  SELECT *, row_number() OVER (PARTITION BY person_id ORDER BY observation_period_start_date ASC) AS rn
  FROM observation_period
) op ON op.person_id = p.person_id AND op.rn = 1
GROUP BY p.gender_concept_id;

-- [length-of-observation-by-age-decile]
SELECT floor((extract(year FROM op.observation_period_start_date) - p.year_of_birth) / 10) AS age_decile,
       count(*) AS periods,
       avg(op.observation_period_end_date - op.observation_period_start_date) AS avg_days,
       stddev(op.observation_period_end_date - op.observation_period_start_date) AS stdev_days
FROM person p
JOIN observation_period op USING (person_id)
GROUP BY 1
ORDER BY 1;

-- [months-of-observation]
SELECT floor((op.observation_period_end_date - op.observation_period_start_date) / 30) AS months, count(DISTINCT op.person_id) AS persons
FROM (
  SELECT person_id, observation_period_start_date, observation_period_end_date,
         row_number() OVER (PARTITION BY person_id ORDER BY observation_period_start_date) AS rn
  FROM observation_period
) op
WHERE op.rn = 1
GROUP BY floor((op.observation_period_end_date - op.observation_period_start_date) / 30)
ORDER BY months;

-- [continuous-observation-by-year]
WITH years AS (
  SELECT generate_series(2015, 2023) AS y
)
SELECT years.y AS obs_year, count(DISTINCT op.person_id) AS persons
FROM observation_period op
CROSS JOIN years
WHERE op.observation_period_start_date <= make_date(years.y, 1, 1)
  AND op.observation_period_end_date >= make_date(years.y, 12, 31)
GROUP BY years.y
ORDER BY years.y;

-- [continuous-observation-by-month]
WITH months AS (
  SELECT m::date AS month_start, (m + interval '1 month' - interval '1 day')::date AS month_end
  FROM generate_series(timestamp '2018-01-01', timestamp '2019-12-01', interval '1 month') AS m
)
SELECT to_char(m.month_start, 'YYYYMM') AS obs_month, count(DISTINCT op.person_id) AS persons
FROM months m
JOIN observation_period op ON op.observation_period_start_date <= m.month_start AND op.observation_period_end_date >= m.month_end
GROUP BY to_char(m.month_start, 'YYYYMM')
ORDER BY 1;

-- [start-month]
SELECT extract(year FROM observation_period_start_date) * 100 + extract(month FROM observation_period_start_date) AS month,
       count(DISTINCT person_id) AS persons
FROM observation_period
GROUP BY 1
ORDER BY 1;

-- [periods-per-person]
SELECT n AS periods, count(*) AS persons
FROM (SELECT person_id, count(*) AS n FROM observation_period GROUP BY person_id) q
GROUP BY n;

-- [implausible-periods]
SELECT count(*) FILTER (WHERE extract(year FROM op.observation_period_start_date) < p.year_of_birth) AS before_birth,
       count(*) FILTER (WHERE op.observation_period_end_date < op.observation_period_start_date) AS end_before_start
FROM observation_period op
JOIN person p ON p.person_id = op.person_id;

-- [observed-by-year-gender-age]
WITH years AS (
  SELECT DISTINCT y FROM generate_series(2015, 2023) AS y
)
SELECT y.y AS obs_year, p.gender_concept_id, floor((y.y - p.year_of_birth) / 10) AS age_decile, count(DISTINCT p.person_id) AS persons
FROM person p
JOIN observation_period op ON op.person_id = p.person_id
JOIN years y ON extract(year FROM op.observation_period_start_date) <= y.y AND extract(year FROM op.observation_period_end_date) >= y.y
GROUP BY y.y, p.gender_concept_id, floor((y.y - p.year_of_birth) / 10);

-- [observed-by-month]
WITH calendar AS (
  SELECT (date_trunc('month', d))::date AS month
  FROM generate_series(date '2018-01-01', date '2019-12-31', interval '1 month') d
)
SELECT c.month, coalesce(count(DISTINCT op.person_id), 0) AS persons
FROM calendar c
LEFT JOIN observation_period op
  ON date_trunc('month', op.observation_period_start_date) <= c.month
 AND date_trunc('month', op.observation_period_end_date) >= c.month
GROUP BY c.month
HAVING count(DISTINCT op.person_id) > 0
ORDER BY c.month;

-- [periods-by-type]
SELECT op.period_type_concept_id, c.concept_name, count(*) AS records
FROM observation_period op
LEFT JOIN concept c ON c.concept_id = op.period_type_concept_id
GROUP BY 1, 2;

-- [visits-by-concept]
SELECT vo.visit_concept_id, c.concept_name, count(DISTINCT vo.person_id) AS persons, count(*) AS records,
       round(1.0 * count(*) / count(DISTINCT vo.person_id), 2) AS records_per_person
FROM visit_occurrence vo
JOIN concept c ON c.concept_id = vo.visit_concept_id
GROUP BY vo.visit_concept_id, c.concept_name
ORDER BY persons DESC;

-- [visits-by-concept-and-month]
SELECT visit_concept_id, (extract(year FROM visit_start_date) * 100 + extract(month FROM visit_start_date))::int AS calendar_month, count(DISTINCT person_id) AS persons
FROM visit_occurrence
WHERE visit_start_date BETWEEN '2017-01-01' AND '2018-12-31'
GROUP BY 1, 2
ORDER BY 1, 2;

-- [visit-concepts-per-person]
WITH raw AS (
  SELECT person_id, count(DISTINCT visit_concept_id) AS count_value
  FROM visit_occurrence
  GROUP BY person_id
)
SELECT count(*) AS total, min(count_value), max(count_value), avg(1.0 * count_value)::float AS avg_value, stddev(count_value)::float AS stdev_value,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY count_value) AS median_value
FROM raw;

-- [visits-by-year-gender-age]
SELECT vo.visit_concept_id, extract(year FROM vo.visit_start_date) AS calendar_year, p.gender_concept_id,
       floor((extract(year FROM vo.visit_start_date) - p.year_of_birth) / 10) AS age_decile,
       count(DISTINCT p.person_id) AS persons
FROM person p
INNER JOIN visit_occurrence vo ON p.person_id = vo.person_id
GROUP BY vo.visit_concept_id, extract(year FROM vo.visit_start_date), p.gender_concept_id,
         floor((extract(year FROM vo.visit_start_date) - p.year_of_birth) / 10);

-- [age-at-first-visit]
SELECT v.visit_concept_id, p.gender_concept_id, count(*) AS n,
       min(v.first_year - p.year_of_birth) AS min_age, max(v.first_year - p.year_of_birth) AS max_age,
       avg(v.first_year - p.year_of_birth) AS avg_age, stddev_samp(v.first_year - p.year_of_birth) AS stdev_age,
       percentile_cont(0.25) WITHIN GROUP (ORDER BY v.first_year - p.year_of_birth) AS p25,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY v.first_year - p.year_of_birth) AS p50,
       percentile_cont(0.75) WITHIN GROUP (ORDER BY v.first_year - p.year_of_birth) AS p75
FROM person p
JOIN (
  SELECT person_id, visit_concept_id, min(extract(year FROM visit_start_date)) AS first_year
  FROM visit_occurrence
  GROUP BY person_id, visit_concept_id
) v ON v.person_id = p.person_id
GROUP BY v.visit_concept_id, p.gender_concept_id;

-- [visits-outside-observation]
SELECT count(*) AS records
FROM visit_occurrence vo
LEFT JOIN observation_period op
  ON op.person_id = vo.person_id
 AND vo.visit_start_date >= op.observation_period_start_date
 AND vo.visit_start_date <= op.observation_period_end_date
WHERE op.person_id IS NULL;

-- [length-of-stay]
SELECT c.concept_name AS visit, count(*) AS visits,
       avg(vo.visit_end_date - vo.visit_start_date) AS mean_days,
       max(vo.visit_end_date - vo.visit_start_date) AS longest,
       percentile_disc(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY vo.visit_end_date - vo.visit_start_date) AS quartiles
FROM visit_occurrence vo
JOIN concept c ON c.concept_id = vo.visit_concept_id
GROUP BY c.concept_name;

-- [condition-prevalence]
SELECT c.concept_id, c.concept_name, count(DISTINCT co.person_id) AS persons,
       round(1000.0 * count(DISTINCT co.person_id) / (SELECT count(*) FROM person), 2) AS per_1000
FROM condition_occurrence co
JOIN concept c ON c.concept_id = co.condition_concept_id
WHERE c.domain_id = 'Condition'
GROUP BY c.concept_id, c.concept_name
ORDER BY persons DESC;

-- [condition-prevalence-by-month]
WITH num AS (
  SELECT co.condition_concept_id, date_trunc('month', co.condition_start_date)::date AS month, count(DISTINCT co.person_id) AS persons
  FROM condition_occurrence co
  WHERE co.condition_start_date >= '2018-01-01' AND co.condition_start_date < '2019-01-01'
  GROUP BY 1, 2
), denom AS (
  SELECT m.month, count(DISTINCT op.person_id) AS persons
  FROM (SELECT generate_series('2018-01-01'::date, '2018-12-01'::date, '1 month')::date AS month) m
  JOIN observation_period op ON op.observation_period_start_date <= m.month AND op.observation_period_end_date >= m.month
  GROUP BY m.month
)
SELECT c.concept_name, num.month, num.persons, 1000.0 * num.persons / denom.persons AS prevalence_per_1000
FROM num
JOIN denom ON denom.month = num.month
JOIN concept c ON c.concept_id = num.condition_concept_id
WHERE c.domain_id = 'Condition'
ORDER BY 1, 2;

-- [conditions-by-year-gender-age]
SELECT co.condition_concept_id AS stratum_1, extract(year FROM co.condition_start_date)::varchar AS stratum_2, p.gender_concept_id AS stratum_3,
       floor((extract(year FROM co.condition_start_date) - p.year_of_birth) / 10)::varchar AS stratum_4, count(DISTINCT p.person_id) AS count_value
FROM person p
JOIN condition_occurrence co ON p.person_id = co.person_id
WHERE co.condition_concept_id IN (201826, 320128)
GROUP BY 1, 2, 3, 4;

-- [age-at-first-diagnosis]
WITH raw AS (
  SELECT co.condition_concept_id AS concept_id, co.start_year - p.year_of_birth AS age
  FROM person p
  JOIN (
    SELECT person_id, condition_concept_id, min(extract(year FROM condition_start_date)::int) AS start_year
    FROM condition_occurrence
    GROUP BY person_id, condition_concept_id
  ) co ON co.person_id = p.person_id
  WHERE co.condition_concept_id <> 0
), overall AS (
  SELECT concept_id, avg(age) AS avg_value, stddev(age) AS stdev_value, min(age) AS min_value, max(age) AS max_value, count(*) AS total
  FROM raw
  GROUP BY concept_id
), by_age AS (
  SELECT concept_id, age, count(*) AS n
  FROM raw
  GROUP BY concept_id, age
), running AS (
  SELECT concept_id, age, sum(n) OVER (PARTITION BY concept_id ORDER BY age) AS accumulated
  FROM by_age
)
SELECT c.concept_name, o.total, o.min_value, o.max_value, round(o.avg_value, 1) AS avg_value, round(o.stdev_value, 1) AS stdev_value,
       min(CASE WHEN r.accumulated >= 0.25 * o.total THEN r.age ELSE o.max_value END) AS p25,
       min(CASE WHEN r.accumulated >= 0.50 * o.total THEN r.age ELSE o.max_value END) AS median,
       min(CASE WHEN r.accumulated >= 0.75 * o.total THEN r.age ELSE o.max_value END) AS p75
FROM running r
JOIN overall o ON o.concept_id = r.concept_id
JOIN concept c ON c.concept_id = o.concept_id
GROUP BY c.concept_name, o.total, o.min_value, o.max_value, o.avg_value, o.stdev_value;

-- [conditions-outside-observation]
SELECT c.concept_name, count(*) AS records, count(DISTINCT co.person_id) AS persons
FROM condition_occurrence co
JOIN concept c ON c.concept_id = co.condition_concept_id
WHERE c.domain_id = 'Condition'
  AND NOT EXISTS (
    SELECT 1
    FROM observation_period op
    WHERE op.person_id = co.person_id
      AND co.condition_start_date BETWEEN op.observation_period_start_date AND op.observation_period_end_date
  )
GROUP BY c.concept_name;

-- [conditions-per-person]
WITH counts AS (
  SELECT person_id, condition_concept_id, count(*) AS num
  FROM condition_occurrence
  GROUP BY person_id, condition_concept_id
)
SELECT condition_concept_id, count(*) AS persons, avg(num) AS avg_value, max(num) AS max_value,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY num) AS p90
FROM counts
GROUP BY condition_concept_id
ORDER BY persons DESC
LIMIT 10;

-- [condition-source-values]
SELECT condition_source_value, condition_concept_id, count(*) AS records
FROM condition_occurrence
GROUP BY condition_source_value, condition_concept_id
ORDER BY records DESC;

-- [unmapped]
SELECT 'condition' AS domain, count(*) AS records, sum(CASE WHEN condition_concept_id = 0 THEN 1 ELSE 0 END) AS unmapped,
       round(100.0 * sum(CASE WHEN condition_concept_id = 0 THEN 1 ELSE 0 END) / count(*), 2) AS pct
FROM condition_occurrence
UNION ALL
SELECT 'drug', count(*), sum(CASE WHEN drug_concept_id = 0 THEN 1 ELSE 0 END),
       round(100.0 * sum(CASE WHEN drug_concept_id = 0 THEN 1 ELSE 0 END) / count(*), 2)
FROM drug_exposure
UNION ALL
SELECT 'visit', count(*), sum(CASE WHEN visit_concept_id = 0 THEN 1 ELSE 0 END),
       round(100.0 * sum(CASE WHEN visit_concept_id = 0 THEN 1 ELSE 0 END) / count(*), 2)
FROM visit_occurrence;

-- [broken-references]
SELECT count(*) AS records
FROM condition_occurrence co
LEFT JOIN visit_occurrence vo ON vo.visit_occurrence_id = co.visit_occurrence_id
WHERE co.visit_occurrence_id IS NOT NULL AND vo.visit_occurrence_id IS NULL;

-- [deaths-by-cause]
SELECT d.cause_concept_id, coalesce(c.concept_name, 'not known') AS cause, count(*) AS deaths
FROM death d
LEFT JOIN concept c ON c.concept_id = d.cause_concept_id
GROUP BY 1, 2;

-- [deaths-by-month]
SELECT extract(year FROM death_date)::int * 100 + extract(month FROM death_date)::int AS month, count(DISTINCT person_id) AS deaths
FROM death
GROUP BY 1
ORDER BY 1;

-- [deaths-by-year-gender-age]
SELECT extract(year FROM d.death_date) AS year, g.concept_name AS gender,
       floor((extract(year FROM d.death_date) - p.year_of_birth) / 10) * 10 AS age_from, count(*) AS deaths
FROM death d
JOIN person p ON p.person_id = d.person_id
JOIN concept g ON g.concept_id = p.gender_concept_id
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;

-- [age-at-death]
SELECT p.gender_concept_id, count(*), min(extract(year FROM d.death_date) - p.year_of_birth), max(extract(year FROM d.death_date) - p.year_of_birth),
       avg(extract(year FROM d.death_date) - p.year_of_birth), stddev(extract(year FROM d.death_date) - p.year_of_birth),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(year FROM d.death_date) - p.year_of_birth)
FROM person p
JOIN death d USING (person_id)
GROUP BY p.gender_concept_id;

-- [last-condition-to-death]
SELECT avg(d.death_date - t.last_date) AS mean_days, min(d.death_date - t.last_date) AS least,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY d.death_date - t.last_date) AS median_days
FROM death d
JOIN (SELECT person_id, max(condition_start_date) AS last_date FROM condition_occurrence GROUP BY person_id) t ON t.person_id = d.person_id;

-- [records-after-death]
SELECT count(*) AS records, count(DISTINCT de.person_id) AS persons
FROM drug_exposure de
JOIN death d ON d.person_id = de.person_id
WHERE de.drug_exposure_start_date > d.death_date + 60;

-- [days-supply]
SELECT de.drug_concept_id, c.concept_name, count(de.days_supply) AS n, min(de.days_supply), max(de.days_supply), avg(de.days_supply), stddev(de.days_supply),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY de.days_supply) AS median
FROM drug_exposure de
JOIN concept c ON c.concept_id = de.drug_concept_id
WHERE de.days_supply IS NOT NULL
GROUP BY de.drug_concept_id, c.concept_name;

-- [drugs-by-type]
SELECT de.drug_concept_id, de.drug_type_concept_id, count(*) AS records
FROM drug_exposure de
GROUP BY de.drug_concept_id, de.drug_type_concept_id;

-- [measurement-values]
WITH vals AS (
  SELECT m.measurement_concept_id, m.unit_concept_id, m.value_as_number
  FROM measurement m
  JOIN observation_period op
    ON op.person_id = m.person_id
   AND m.measurement_date >= op.observation_period_start_date
   AND m.measurement_date <= op.observation_period_end_date
  WHERE m.value_as_number IS NOT NULL AND m.unit_concept_id IS NOT NULL
)
SELECT measurement_concept_id, unit_concept_id, count(*) AS total, avg(value_as_number)::float AS avg_value, stddev(value_as_number)::float AS stdev_value,
       min(value_as_number) AS min_value, max(value_as_number) AS max_value,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY value_as_number) AS median_value
FROM vals
GROUP BY measurement_concept_id, unit_concept_id;

-- [measurements-in-range]
SELECT c.concept_name,
       CASE WHEN m.value_as_number < m.range_low THEN 'Below Range Low'
            WHEN m.value_as_number >= m.range_low AND m.value_as_number <= m.range_high THEN 'Within Range'
            WHEN m.value_as_number > m.range_high THEN 'Above Range High'
            ELSE 'Other' END AS range,
       count(*) AS records
FROM measurement m
JOIN concept c ON c.concept_id = m.measurement_concept_id
WHERE c.domain_id = 'Measurement'
GROUP BY 1, 2
ORDER BY 1, 2;

-- [records-by-month]
SELECT series, month, count(*) AS records
FROM (
  SELECT 'Visit' AS series, person_id, date_trunc('month', visit_start_date)::date AS month FROM visit_occurrence
  UNION ALL
  SELECT 'Condition', person_id, date_trunc('month', condition_start_date)::date FROM condition_occurrence
  UNION ALL
  SELECT 'Drug', person_id, date_trunc('month', drug_exposure_start_date)::date FROM drug_exposure
) events
WHERE month >= '2018-01-01' AND month < '2019-01-01'
GROUP BY series, month
ORDER BY series, month;

-- [domains-per-person]
WITH flags AS (
  SELECT p.person_id,
         CASE WHEN v.person_id IS NULL THEN 0 ELSE 1 END AS has_visit,
         CASE WHEN c.person_id IS NULL THEN 0 ELSE 1 END AS has_condition,
         CASE WHEN d.person_id IS NULL THEN 0 ELSE 1 END AS has_drug,
         CASE WHEN m.person_id IS NULL THEN 0 ELSE 1 END AS has_measurement
  FROM person p
  LEFT JOIN (SELECT DISTINCT person_id FROM visit_occurrence) v ON v.person_id = p.person_id
  LEFT JOIN (SELECT DISTINCT person_id FROM condition_occurrence) c ON c.person_id = p.person_id
  LEFT JOIN (SELECT DISTINCT person_id FROM drug_exposure) d ON d.person_id = p.person_id
  LEFT JOIN (SELECT DISTINCT person_id FROM measurement) m ON m.person_id = p.person_id
)
SELECT has_visit::varchar || has_condition::varchar || has_drug::varchar || has_measurement::varchar AS domains,
       count(*) AS persons, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS pct
FROM flags
GROUP BY 1
ORDER BY persons DESC;
