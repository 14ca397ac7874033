INSERT INTO people SELECT i, 17 + i %% 74, CASE WHEN i %% 5 > 0 THEN 'Private' END, 'Bachelors', 13, 'Divorced', 'Sales', 'Wife', 'Other',
	CASE WHEN i %% 2 = 0 THEN 'Female' ELSE 'Male' END, 0, 0, 1 + i %% 99, 'Peru', CASE WHEN i %% 4 = 0 THEN '>50K' ELSE '<=50K' END
	FROM generate_series(1, %[1]d) i;
INSERT INTO regions SELECT unnest(ARRAY['North', 'South', 'East', 'West']);
INSERT INTO visits SELECT i, i, date '2025-01-01' + i %% 365, (ARRAY['North', 'South', 'East', 'West'])[1 + i %% 4], i %% 400 + 0.25
	FROM generate_series(1, %[1]d) i;
