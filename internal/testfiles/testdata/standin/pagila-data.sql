-- As many rows as Pagila has, of nobody and the same everywhere: numbers are drawn by digest.
CREATE FUNCTION pg_temp.draw(what text, id bigint, below int) RETURNS int LANGUAGE sql IMMUTABLE AS
    $$ SELECT ('x' || left(md5(what || id), 7))::bit(28)::int % below $$;
INSERT INTO country SELECT i, 'Country ' || i FROM generate_series(1, 109) i;
INSERT INTO city SELECT i, 'City ' || i, 1 + i % 109 FROM generate_series(1, 600) i;
INSERT INTO address SELECT i, i || ' Street', NULL, 'District ' || i % 50, 1 + i % 600, NULL, '000' FROM generate_series(1, 603) i;
INSERT INTO store SELECT i, i, 1 + i FROM generate_series(0, 499) i;
INSERT INTO staff SELECT i, 'First ' || i, 'Last ' || i, 1 + i % 603, NULL, pg_temp.draw('store of staff', i, 500), true, 'user' || i
    FROM generate_series(0, 1499) i;
INSERT INTO language SELECT i, name FROM unnest(ARRAY['English', 'Italian', 'Japanese', 'Mandarin', 'French', 'German']) WITH ORDINALITY l(name, i);
INSERT INTO category SELECT i, name FROM unnest(ARRAY['Action', 'Animation', 'Children', 'Classics', 'Comedy', 'Documentary', 'Drama', 'Family',
    'Foreign', 'Games', 'Horror', 'Music', 'New', 'Sci-Fi', 'Sports', 'Travel']) WITH ORDINALITY c(name, i);
INSERT INTO actor SELECT i, 'First ' || i, 'Last ' || i FROM generate_series(1, 200) i;
INSERT INTO film (film_id, title, release_year, language_id, rental_duration, rental_rate, length, replacement_cost, rating, special_features, fulltext)
    SELECT i, 'FILM ' || to_char(i, 'FM0000'), 2006 + i % 17, 1 + pg_temp.draw('language', i, 6), 3 + i % 5,
        (ARRAY[0.99, 2.99, 4.99])[1 + pg_temp.draw('rate', i, 3)], 46 + pg_temp.draw('length', i, 140), 9.99 + i % 20,
        (enum_range(NULL::mpaa_rating))[1 + pg_temp.draw('rating', i, 5)], ARRAY['Trailers'], to_tsvector('simple', 'film ' || i)
    FROM generate_series(1, 1000) i;
INSERT INTO film_actor SELECT DISTINCT 1 + pg_temp.draw('actor', i, 200), 1 + i % 1000 FROM generate_series(1, 5500) i;
INSERT INTO film_category SELECT 1 + i % 1000, 1 + (i * 7 + i / 1000 * 5) % 16 FROM generate_series(0, 2399) i;
INSERT INTO inventory SELECT i, 1 + i % 1000, pg_temp.draw('store of inventory', i, 500) FROM generate_series(1, 4581) i;
INSERT INTO customer SELECT i, 1 + pg_temp.draw('store of customer', i, 2), 'First ' || i, 'Last ' || i, NULL, 1 + i % 603, true, '2022-02-14', now(),
    CASE WHEN i % 40 = 0 THEN 0 ELSE 1 END FROM generate_series(1, 599) i;
-- A customer rents 12 to 41 times, in the summer; some films did not come back.
INSERT INTO rental SELECT i, day, 1 + pg_temp.draw('inventory', i, 4581), customer,
        CASE WHEN i % 88 > 0 THEN day + make_interval(hours => 18 + pg_temp.draw('back', i, 200)) END, pg_temp.draw('staff', i, 1500)
    FROM (SELECT row_number() OVER (ORDER BY customer, n) AS i, customer FROM generate_series(1, 599) customer,
        LATERAL generate_series(1, 12 + pg_temp.draw('rentals', customer, 30)) n) r,
        LATERAL (SELECT '2022-05-20 00:00:00+00'::timestamptz + make_interval(secs => pg_temp.draw('day', i, 8294400)) AS day) d;
INSERT INTO payment SELECT rental_id, customer_id, staff_id, rental_id, (ARRAY[0.99, 2.99, 4.99])[1 + pg_temp.draw('paid', rental_id, 3)]
        + pg_temp.draw('late', rental_id, 7), '2022-01-10 00:00:00+00'::timestamptz + make_interval(secs => pg_temp.draw('paid on', rental_id, 17280000))
    FROM rental;
