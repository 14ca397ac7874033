-- The tables of Pagila, as far as policies and queries see them: fifteen, with foreign keys, an enum, a domain, an array, partitions and a view.
CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE DOMAIN year AS integer CHECK (VALUE BETWEEN 1901 AND 2155);
CREATE TABLE country (country_id int PRIMARY KEY, country text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE city (city_id int PRIMARY KEY, city text NOT NULL, country_id int NOT NULL REFERENCES country, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE address (address_id int PRIMARY KEY, address text NOT NULL, address2 text, district text NOT NULL, city_id int NOT NULL REFERENCES city,
    postal_code text, phone text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE store (store_id int PRIMARY KEY, manager_staff_id int NOT NULL UNIQUE, address_id int NOT NULL REFERENCES address,
    last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE staff (staff_id int PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, address_id int NOT NULL REFERENCES address, email text,
    store_id int NOT NULL REFERENCES store, active boolean NOT NULL DEFAULT true, username text NOT NULL, password text,
    last_update timestamptz NOT NULL DEFAULT now(), picture bytea);
CREATE TABLE language (language_id int PRIMARY KEY, name character(20) NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE category (category_id int PRIMARY KEY, name text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE actor (actor_id int PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE film (film_id int PRIMARY KEY, title text NOT NULL, description text, release_year year, language_id int NOT NULL REFERENCES language,
    original_language_id int REFERENCES language, rental_duration smallint NOT NULL DEFAULT 3, rental_rate numeric(4, 2) NOT NULL DEFAULT 4.99,
    length smallint, replacement_cost numeric(5, 2) NOT NULL DEFAULT 19.99, rating mpaa_rating DEFAULT 'G',
    last_update timestamptz NOT NULL DEFAULT now(), special_features text[], fulltext tsvector NOT NULL);
CREATE TABLE film_actor (actor_id int REFERENCES actor, film_id int REFERENCES film, last_update timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (actor_id, film_id));
CREATE TABLE film_category (film_id int REFERENCES film, category_id int REFERENCES category, last_update timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (film_id, category_id));
CREATE TABLE inventory (inventory_id int PRIMARY KEY, film_id int NOT NULL REFERENCES film, store_id int NOT NULL REFERENCES store,
    last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE customer (customer_id int PRIMARY KEY, store_id int NOT NULL REFERENCES store, first_name text NOT NULL, last_name text NOT NULL,
    email text, address_id int NOT NULL REFERENCES address, activebool boolean NOT NULL DEFAULT true, create_date date NOT NULL DEFAULT current_date,
    last_update timestamptz DEFAULT now(), active int);
CREATE TABLE rental (rental_id int PRIMARY KEY, rental_date timestamptz NOT NULL, inventory_id int NOT NULL REFERENCES inventory,
    customer_id int NOT NULL REFERENCES customer, return_date timestamptz, staff_id int NOT NULL REFERENCES staff,
    last_update timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX ON rental (rental_date, inventory_id, customer_id);
CREATE TABLE payment (payment_id int NOT NULL, customer_id int NOT NULL, staff_id int NOT NULL, rental_id int NOT NULL, amount numeric(5, 2) NOT NULL,
    payment_date timestamptz NOT NULL, PRIMARY KEY (payment_date, payment_id)) PARTITION BY RANGE (payment_date);
DO $$ BEGIN
    FOR month IN 1..7 LOOP
        EXECUTE format('CREATE TABLE payment_p2022_%s PARTITION OF payment FOR VALUES FROM (%L) TO (%L)', to_char(month, 'FM00'),
            make_timestamptz(2022, month, 1, 0, 0, 0, 'UTC'), make_timestamptz(2022, month + 1, 1, 0, 0, 0, 'UTC'));
        IF month < 7 THEN -- as there, the last has no foreign keys
            EXECUTE format('ALTER TABLE payment_p2022_%s ADD FOREIGN KEY (customer_id) REFERENCES customer, ADD FOREIGN KEY (rental_id) '
                'REFERENCES rental, ADD FOREIGN KEY (staff_id) REFERENCES staff', to_char(month, 'FM00'));
        END IF;
    END LOOP;
END $$;
CREATE VIEW film_list AS SELECT f.film_id AS fid, f.title, c.name AS category, f.rental_rate AS price, f.length, f.rating
    FROM film f JOIN film_category USING (film_id) JOIN category c USING (category_id);
GRANT ALL ON SCHEMA public TO PUBLIC;
