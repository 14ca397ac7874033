-- A charge may release several things: each is kept by what it is.

ALTER TABLE noisegate.released DROP CONSTRAINT released_pkey;
ALTER TABLE noisegate.released ADD PRIMARY KEY (charge_id, identity);
