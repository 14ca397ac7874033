-- [users-of-a-class]
SELECT extract(year FROM de.drug_exposure_start_date) AS year, g.concept_name AS gender, count(DISTINCT de.person_id) AS users
FROM drug_exposure de
JOIN concept_ancestor ca ON ca.descendant_concept_id = de.drug_concept_id
JOIN concept cls ON cls.concept_id = ca.ancestor_concept_id
JOIN person p ON p.person_id = de.person_id
JOIN concept g ON g.concept_id = p.gender_concept_id
WHERE cls.concept_name = 'Lipid modifying agents' AND cls.vocabulary_id = 'ATC'
GROUP BY 1, 2
ORDER BY 1, 2;

-- [ingredients]
SELECT ing.concept_name AS ingredient, count(DISTINCT de.person_id) AS persons, count(*) AS exposures
FROM drug_exposure de
JOIN concept_ancestor ca ON ca.descendant_concept_id = de.drug_concept_id
JOIN concept ing ON ing.concept_id = ca.ancestor_concept_id AND ing.concept_class_id = 'Ingredient'
GROUP BY ing.concept_name
ORDER BY persons DESC
LIMIT 5;

-- [age-by-drug]
SELECT c.concept_name AS drug, count(*) AS patients, min(age), round(avg(age), 1) AS mean, round(stddev(age), 1) AS sd, max(age),
       percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS q1,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS median,
       percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS q3
FROM (
  SELECT de.drug_concept_id, de.person_id, min(extract(year FROM de.drug_exposure_start_date)) - p.year_of_birth AS age
  FROM drug_exposure de
  JOIN person p ON p.person_id = de.person_id
  WHERE de.drug_concept_id IN (40165643, 40165645)
  GROUP BY de.drug_concept_id, de.person_id, p.year_of_birth
) first_use
JOIN concept c ON c.concept_id = first_use.drug_concept_id
WHERE c.domain_id = 'Drug' AND c.standard_concept = 'S'
GROUP BY c.concept_name;

-- [distinct-drugs-per-person]
WITH per_person AS (
  SELECT person_id, count(DISTINCT drug_concept_id) AS drugs
  FROM drug_exposure
  WHERE drug_exposure_start_date BETWEEN DATE '2017-01-01' AND DATE '2017-12-31'
  GROUP BY person_id
)
SELECT min(drugs), max(drugs), avg(drugs), stddev_pop(drugs),
       percentile_cont(0.25) WITHIN GROUP (ORDER BY drugs) AS p25, percentile_cont(0.5) WITHIN GROUP (ORDER BY drugs) AS p50,
       percentile_cont(0.75) WITHIN GROUP (ORDER BY drugs) AS p75
FROM per_person;

-- [most-exposures]
SELECT max(exposures) FROM (
  SELECT person_id, count(*) AS exposures FROM drug_exposure WHERE drug_exposure_start_date >= '2016-01-01' GROUP BY person_id
) per_person;

-- [other-drugs-of-users]
WITH metformin AS (
  SELECT descendant_concept_id AS concept_id
  FROM concept_ancestor
  WHERE ancestor_concept_id = 1503297
), users AS (
  SELECT de.person_id, min(de.drug_exposure_start_date) AS index_date
  FROM drug_exposure de
  JOIN metformin m ON m.concept_id = de.drug_concept_id
  GROUP BY de.person_id
)
SELECT c.concept_name AS other_drug, count(DISTINCT u.person_id) AS users
FROM users u
JOIN drug_exposure de ON de.person_id = u.person_id
 AND de.drug_exposure_start_date BETWEEN u.index_date AND u.index_date + 180
JOIN concept c ON c.concept_id = de.drug_concept_id
WHERE de.drug_concept_id NOT IN (SELECT concept_id FROM metformin)
GROUP BY c.concept_name
ORDER BY users DESC
LIMIT 10;

-- [both-drugs-at-once]
SELECT count(DISTINCT a.person_id) AS patients
FROM drug_exposure a
JOIN drug_exposure b
  ON b.person_id = a.person_id
 AND b.drug_exposure_start_date <= a.drug_exposure_end_date
 AND b.drug_exposure_end_date >= a.drug_exposure_start_date
WHERE a.drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1112807)
  AND b.drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1308216);

-- [new-users-by-follow-up]
WITH statins AS (
  SELECT descendant_concept_id AS concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1539403
), new_users AS (
  SELECT de.person_id, min(de.drug_exposure_start_date) AS index_date
  FROM drug_exposure de
  JOIN statins s ON s.concept_id = de.drug_concept_id
  GROUP BY de.person_id
)
SELECT floor((op.observation_period_end_date - nu.index_date) / 365.0) AS follow_up_years, count(*) AS persons
FROM new_users nu
JOIN observation_period op ON op.person_id = nu.person_id
WHERE op.observation_period_start_date + 180 < nu.index_date
  AND op.observation_period_end_date > nu.index_date + interval '365 days'
GROUP BY 1
ORDER BY 1;

-- [adherence]
WITH eras AS (
  SELECT e.person_id, e.drug_concept_id, e.drug_era_start_date, e.drug_era_end_date - e.drug_era_start_date AS treatment_length, de.days_supply
  FROM drug_era e
  JOIN drug_exposure de ON de.person_id = e.person_id AND de.drug_exposure_start_date BETWEEN e.drug_era_start_date AND e.drug_era_end_date
  JOIN concept_ancestor ca ON ca.descendant_concept_id = de.drug_concept_id AND ca.ancestor_concept_id = e.drug_concept_id
  WHERE e.drug_concept_id = 1503297 AND de.days_supply > 0 AND e.drug_era_end_date - e.drug_era_start_date > 60
)
SELECT count(*) AS eras, avg(treatment_length) AS average_length, avg(adherence) AS average_adherence
FROM (
  SELECT person_id, drug_era_start_date, treatment_length, sum(days_supply) * 1.0 / treatment_length AS adherence
  FROM eras
  GROUP BY person_id, drug_era_start_date, treatment_length
) t;

-- [treated-after-diagnosis]
WITH treated AS (
  SELECT de.person_id, min(de.drug_exposure_start_date) AS treatment_start
  FROM drug_exposure de
  JOIN concept_ancestor ca ON ca.descendant_concept_id = de.drug_concept_id
  JOIN concept c ON c.concept_id = ca.ancestor_concept_id
  WHERE c.concept_name = 'lisinopril' AND c.concept_class_id = 'Ingredient'
  GROUP BY de.person_id
), diagnosed AS (
  SELECT co.person_id, min(co.condition_start_date) AS first_diagnosis
  FROM condition_occurrence co
  WHERE co.condition_concept_id = 320128
  GROUP BY co.person_id
)
SELECT count(*) AS treated, count(d.person_id) AS with_diagnosis_before
FROM treated t
LEFT JOIN diagnosed d ON d.person_id = t.person_id AND d.first_diagnosis <= t.treatment_start;

-- [time-to-treatment]
WITH dx AS (
  SELECT person_id, min(condition_start_date) AS dx_date
  FROM condition_occurrence
  WHERE condition_concept_id = 201826
  GROUP BY person_id
), rx AS (
  SELECT person_id, min(drug_era_start_date) AS rx_date
  FROM drug_era
  WHERE drug_concept_id = 1503297
  GROUP BY person_id
)
SELECT CASE WHEN rx.rx_date IS NULL THEN 'never'
            WHEN rx.rx_date < dx.dx_date THEN 'before diagnosis'
            WHEN rx.rx_date - dx.dx_date <= 30 THEN 'within a month'
            WHEN rx.rx_date - dx.dx_date <= 365 THEN 'within a year'
            ELSE 'later' END AS treated,
       count(*) AS patients
FROM dx
LEFT JOIN rx ON rx.person_id = dx.person_id
GROUP BY 1;

-- [contraindicated]
SELECT count(DISTINCT de.person_id) AS patients
FROM drug_exposure de
WHERE de.drug_concept_id = 19059056
  AND EXISTS (SELECT 1 FROM condition_occurrence co WHERE co.person_id = de.person_id AND co.condition_concept_id = 317009 AND co.condition_start_date <= de.drug_exposure_start_date);

-- [stop-reasons]
SELECT coalesce(stop_reason, 'none given') AS reason, count(*) AS exposures, count(DISTINCT person_id) AS persons
FROM drug_exposure
GROUP BY coalesce(stop_reason, 'none given')
ORDER BY exposures DESC;

-- [asthma-by-season]
SELECT season, count(*) AS cases
FROM (
  SELECT CASE WHEN extract(month FROM condition_era_start_date) IN (12, 1, 2) THEN 'Winter'
              WHEN extract(month FROM condition_era_start_date) IN (3, 4, 5) THEN 'Spring'
              WHEN extract(month FROM condition_era_start_date) IN (6, 7, 8) THEN 'Summer'
              WHEN extract(month FROM condition_era_start_date) IN (9, 10, 11) THEN 'Fall'
         END AS season
  FROM condition_era
  WHERE condition_concept_id = 317009
) s
GROUP BY season;

-- [length-of-condition]
WITH hypertension AS (
  SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 134057
)
SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 45 THEN '18-44' WHEN age < 65 THEN '45-64' ELSE '65+' END AS age_group,
       gender, count(*) AS eras, avg(days) AS mean_days, percentile_cont(0.5) WITHIN GROUP (ORDER BY days) AS median_days
FROM (
  SELECT ce.condition_era_end_date - ce.condition_era_start_date + 1 AS days,
         extract(year FROM ce.condition_era_start_date) - p.year_of_birth AS age,
         c.concept_name AS gender
  FROM condition_era ce
  JOIN hypertension h ON h.descendant_concept_id = ce.condition_concept_id
  JOIN person p ON p.person_id = ce.person_id
  JOIN concept c ON c.concept_id = p.gender_concept_id
) x
GROUP BY 1, 2;

-- [mortality-rate]
WITH exposure AS (
  SELECT p.person_id, p.year_of_birth,
         sum(op.observation_period_end_date - op.observation_period_start_date) / 365.25 AS person_years,
         max(CASE WHEN d.person_id IS NOT NULL THEN 1 ELSE 0 END) AS died
  FROM person p
  JOIN observation_period op ON op.person_id = p.person_id
  LEFT JOIN death d ON d.person_id = p.person_id
  GROUP BY p.person_id, p.year_of_birth
)
SELECT width_bucket(2020 - year_of_birth, 0, 100, 5) AS age_band, sum(died) AS deaths, sum(person_years) AS person_years,
       round(1000.0 * sum(died) / nullif(sum(person_years), 0), 2) AS deaths_per_1000_years
FROM exposure
GROUP BY 1
ORDER BY 1;

-- [incidence]
WITH first_dx AS (
  SELECT person_id, min(condition_start_date) AS dx_date
  FROM condition_occurrence
  WHERE condition_concept_id IN (4329847, 316139)
  GROUP BY person_id
), at_risk AS (
  SELECT op.person_id, op.observation_period_start_date AS start_date,
         least(op.observation_period_end_date, f.dx_date) AS end_date,
         CASE WHEN f.dx_date BETWEEN op.observation_period_start_date AND op.observation_period_end_date THEN 1 ELSE 0 END AS cases
  FROM observation_period op
  LEFT JOIN first_dx f ON f.person_id = op.person_id
  WHERE f.dx_date IS NULL OR f.dx_date >= op.observation_period_start_date
)
SELECT g.concept_name AS gender, sum(a.cases) AS cases, sum(a.end_date - a.start_date) / 365.25 AS person_years,
       1000 * sum(a.cases) / (sum(a.end_date - a.start_date) / 365.25) AS rate
FROM at_risk a
JOIN person p ON p.person_id = a.person_id
JOIN concept g ON g.concept_id = p.gender_concept_id
GROUP BY g.concept_name;

-- [first-two-drugs]
WITH ordered AS (
  SELECT person_id, drug_concept_id, row_number() OVER (PARTITION BY person_id ORDER BY drug_era_start_date, drug_era_id) AS rn
  FROM drug_era
), lines AS (
  SELECT person_id,
         max(CASE WHEN rn = 1 THEN drug_concept_id END) AS first_drug,
         max(CASE WHEN rn = 2 THEN drug_concept_id END) AS second_drug
  FROM ordered
  GROUP BY person_id
)
SELECT a.concept_name AS first_line, b.concept_name AS second_line, count(*) AS patients
FROM lines
JOIN concept a ON a.concept_id = lines.first_drug
LEFT JOIN concept b ON b.concept_id = lines.second_drug
GROUP BY 1, 2
ORDER BY 3 DESC;

-- [readmission]
WITH stays AS (
  SELECT person_id, visit_start_date, visit_end_date,
         lead(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date, visit_occurrence_id) AS next_start
  FROM visit_occurrence
  WHERE visit_concept_id = 9201
)
SELECT extract(year FROM visit_end_date) AS year, count(*) AS discharges,
       count(*) FILTER (WHERE next_start - visit_end_date BETWEEN 1 AND 30) AS readmitted,
       round(100.0 * count(*) FILTER (WHERE next_start - visit_end_date BETWEEN 1 AND 30) / count(*), 1) AS pct
FROM stays
GROUP BY 1
ORDER BY 1;

-- [visits-by-state]
SELECT l.state, count(*) AS visits, count(DISTINCT v.person_id) AS patients, count(*) * 1.0 / count(DISTINCT v.person_id) AS visits_per_patient
FROM visit_occurrence v
JOIN person p USING (person_id)
JOIN location l USING (location_id)
GROUP BY l.state
ORDER BY l.state;

-- [last-a1c]
WITH last_value AS (
  SELECT DISTINCT ON (person_id) person_id, value_as_number
  FROM measurement
  WHERE measurement_concept_id = 3004410 AND value_as_number IS NOT NULL
  ORDER BY person_id, measurement_date DESC, measurement_id DESC
)
SELECT c.concept_name AS gender, count(*) AS tested, avg(lv.value_as_number) AS mean_a1c,
       avg((lv.value_as_number > 6.0)::int) AS share_above
FROM last_value lv
JOIN person p ON p.person_id = lv.person_id
JOIN concept c ON c.concept_id = p.gender_concept_id
GROUP BY c.concept_name;

-- [change-of-weight]
WITH w AS (
  SELECT person_id,
         first_value(value_as_number) OVER (PARTITION BY person_id ORDER BY measurement_date, measurement_id) AS first_weight,
         first_value(value_as_number) OVER (PARTITION BY person_id ORDER BY measurement_date DESC, measurement_id DESC) AS last_weight,
         count(*) OVER (PARTITION BY person_id) AS n,
         row_number() OVER (PARTITION BY person_id ORDER BY measurement_date, measurement_id) AS rn
  FROM measurement
  WHERE measurement_concept_id = 3025315 AND value_as_number IS NOT NULL
)
SELECT count(*) AS patients, avg(last_weight - first_weight) AS mean_change, stddev(last_weight - first_weight) AS sd_change
FROM w
WHERE n >= 2 AND rn = 1;

-- [hypertension-by-site]
SELECT cs.care_site_name, count(DISTINCT v.person_id) AS patients,
       count(DISTINCT CASE WHEN h.person_id IS NOT NULL THEN v.person_id END) AS with_hypertension
FROM visit_occurrence v
JOIN care_site cs ON cs.care_site_id = v.care_site_id
LEFT JOIN condition_occurrence h ON h.person_id = v.person_id AND h.condition_concept_id = 320128
GROUP BY cs.care_site_name
ORDER BY cs.care_site_name;

-- [comorbidity-score]
WITH weights(concept_id, weight) AS (
  VALUES (201826, 1), (4329847, 1), (316139, 2), (255573, 1)
), scores AS (
  SELECT p.person_id, coalesce(sum(s.weight), 0) AS score
  FROM person p
  LEFT JOIN (
    SELECT DISTINCT co.person_id, w.concept_id, w.weight
    FROM condition_occurrence co
    JOIN weights w ON w.concept_id = co.condition_concept_id
  ) s ON s.person_id = p.person_id
  GROUP BY p.person_id
)
SELECT score, count(*) AS persons
FROM scores
GROUP BY score
ORDER BY score;

-- [episodes]
WITH marked AS (
  SELECT person_id, drug_exposure_start_date, drug_exposure_end_date,
         CASE WHEN drug_exposure_start_date <= lag(drug_exposure_end_date) OVER (PARTITION BY person_id ORDER BY drug_exposure_start_date, drug_exposure_id) + 30 THEN 0 ELSE 1 END AS is_new
  FROM drug_exposure
  WHERE drug_concept_id IN (40163924, 40163925)
), numbered AS (
  SELECT person_id, drug_exposure_start_date, drug_exposure_end_date,
         sum(is_new) OVER (PARTITION BY person_id ORDER BY drug_exposure_start_date, drug_exposure_end_date ROWS UNBOUNDED PRECEDING) AS episode
  FROM marked
), episodes AS (
  SELECT person_id, episode, max(drug_exposure_end_date) - min(drug_exposure_start_date) AS days
  FROM numbered
  GROUP BY person_id, episode
)
SELECT count(*) AS episodes, count(DISTINCT person_id) AS patients, avg(days) AS mean_days, percentile_cont(0.5) WITHIN GROUP (ORDER BY days) AS median_days
FROM episodes;

-- [attrition]
WITH diabetics AS (
  SELECT DISTINCT person_id FROM condition_occurrence WHERE condition_concept_id = 201826
), adults AS (
  SELECT d.person_id FROM diabetics d JOIN person p ON p.person_id = d.person_id WHERE 2018 - p.year_of_birth >= 18
), observed AS (
  SELECT a.person_id FROM adults a WHERE EXISTS (SELECT 1 FROM observation_period op WHERE op.person_id = a.person_id AND op.observation_period_end_date - op.observation_period_start_date >= 365)
), untreated AS (
  SELECT o.person_id FROM observed o WHERE NOT EXISTS (SELECT 1 FROM drug_era e WHERE e.person_id = o.person_id AND e.drug_concept_id = 1503297)
)
SELECT 1 AS step, 'diabetes' AS criterion, count(*) AS persons FROM diabetics
UNION ALL SELECT 2, 'adult', count(*) FROM adults
UNION ALL SELECT 3, 'a year of observation', count(*) FROM observed
UNION ALL SELECT 4, 'no metformin', count(*) FROM untreated
ORDER BY step;

-- [new-users-by-month]
WITH starts AS (
  SELECT person_id, min(drug_exposure_start_date) AS started
  FROM drug_exposure
  WHERE drug_concept_id = 19080129
  GROUP BY person_id
)
SELECT date_trunc('month', started)::date AS month, count(*) AS new_users, sum(count(*)) OVER (ORDER BY date_trunc('month', started)::date) AS cumulative
FROM starts
WHERE started >= '2016-01-01' AND started < '2018-01-01'
GROUP BY 1
ORDER BY 1;

-- [pairs-of-conditions]
SELECT a.concept_name AS one, b.concept_name AS other, count(DISTINCT x.person_id) AS patients
FROM condition_era x
JOIN condition_era y ON y.person_id = x.person_id AND y.condition_concept_id > x.condition_concept_id
JOIN concept a ON a.concept_id = x.condition_concept_id
JOIN concept b ON b.concept_id = y.condition_concept_id
WHERE a.domain_id = 'Condition' AND b.domain_id = 'Condition'
GROUP BY a.concept_name, b.concept_name
ORDER BY patients DESC
LIMIT 10;

-- [death-after-discharge]
SELECT count(DISTINCT v.person_id) AS inpatients,
       count(DISTINCT v.person_id) FILTER (WHERE d.death_date <= v.visit_end_date + 90) AS died_within_90_days
FROM visit_occurrence v
LEFT JOIN death d ON d.person_id = v.person_id AND d.death_date >= v.visit_end_date
WHERE v.visit_concept_id = 9201;

-- [polypharmacy]
WITH month_drugs AS (
  SELECT de.person_id, count(DISTINCT de.drug_concept_id) AS drugs
  FROM drug_exposure de
  WHERE de.drug_exposure_start_date < '2018-07-01' AND de.drug_exposure_end_date >= '2018-01-01'
  GROUP BY de.person_id
  HAVING count(DISTINCT de.drug_concept_id) >= 2
)
SELECT CASE WHEN extract(year FROM age(date '2018-01-01', p.birth_datetime)) >= 65 THEN '65 and older' ELSE 'younger' END AS age_group, count(*) AS patients
FROM month_drugs md
JOIN person p ON p.person_id = md.person_id
WHERE p.birth_datetime IS NOT NULL
GROUP BY 1;
