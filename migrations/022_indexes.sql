-- A release is found by what it is; by its charge nothing looks for it. That is one index less to write, and none by which a look-up could
-- read all of them.

ALTER TABLE noisegate.released DROP CONSTRAINT released_pkey;
DROP INDEX noisegate.released_own;
ALTER TABLE noisegate.released ADD PRIMARY KEY (identity, analyst, charge_id);
