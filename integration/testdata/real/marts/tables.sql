-- A chain of coffee shops, in the layout that people who model with dbt use: customers are the people. Values are computed, not drawn.
CREATE TABLE stores (id int PRIMARY KEY, name varchar(30) NOT NULL, opened_at date NOT NULL, tax_rate numeric(4,3) NOT NULL);
CREATE TABLE products (sku varchar(10) PRIMARY KEY, name varchar(40) NOT NULL, type varchar(10) NOT NULL, price int NOT NULL);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, created_at timestamp NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, store_id int NOT NULL REFERENCES stores,
  ordered_at timestamp NOT NULL, status varchar(15) NOT NULL, subtotal int NOT NULL, tax_paid int NOT NULL, order_total int NOT NULL);
CREATE TABLE items (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, sku varchar(10) NOT NULL REFERENCES products);
CREATE TABLE payments (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, payment_method varchar(15) NOT NULL, amount int NOT NULL);
INSERT INTO stores SELECT g, 'Store ' || g, date '2020-01-01' + g * 90, 0.04 + g * 0.005 FROM generate_series(1, 6) g;
INSERT INTO products SELECT 'SKU-' || g, 'product ' || g, (ARRAY['beverage', 'jaffle'])[1 + g % 2], 300 + g * 100 FROM generate_series(1, 10) g;
INSERT INTO customers SELECT g, 'customer ' || g, timestamp '2022-01-01' + (g * 7919 % 500) * interval '1 day' FROM generate_series(1, 4000) g;
INSERT INTO orders SELECT id, customer, 1 + h % 6, timestamp '2022-09-01 07:00' + (h % 480) * interval '1 day' + (h % 600) * interval '1 minute',
  (ARRAY['completed', 'completed', 'completed', 'shipped', 'returned'])[1 + h % 5], sub, sub * 6 / 100, sub + sub * 6 / 100
  FROM (SELECT row_number() OVER (ORDER BY customer, n)::int AS id, customer, h, 400 + h % 26 * 100 AS sub
    FROM (SELECT customer, n, (customer * 7919 + n * 104729) % 100003 AS h FROM generate_series(1, 3600) customer,
      LATERAL generate_series(1, 1 + 24 / (1 + customer % 11)) n) a) b;
INSERT INTO items SELECT row_number() OVER (ORDER BY o.id, n)::int, o.id, 'SKU-' || 1 + (o.id * 7 + n * 3) % 10 FROM orders o, generate_series(1, 3) n
  WHERE n <= 1 + o.id % 3;
INSERT INTO payments SELECT id, id, (ARRAY['credit_card', 'bank_transfer', 'coupon', 'gift_card'])[1 + id * 13 % 4], order_total FROM orders;
ANALYZE;
