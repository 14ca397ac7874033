-- Receipts name the entry that settled a charge, and histories go on from one.

CREATE INDEX entry_settlement ON noisegate.entry (charge_id) WHERE kind = 'settle';
