-- Who raised an account last, alone: for them it pays nothing (budget/own-raise). What was raised before nobody is refused for.

ALTER TABLE noisegate.account ADD COLUMN raised_by text NOT NULL DEFAULT '';
GRANT UPDATE (raised_by) ON noisegate.account TO noisegate;

-- Of versions until this one, who raised caps last, alone.
ALTER TABLE noisegate.policy ADD COLUMN raised_by text NOT NULL DEFAULT '';
