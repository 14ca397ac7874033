-- How often each account was refilled since there are signed refills: a steward signs for the next one.

ALTER TABLE noisegate.account ADD COLUMN refills bigint NOT NULL DEFAULT 0 CHECK (refills >= 0);

GRANT UPDATE (refills) ON noisegate.account TO noisegate;
