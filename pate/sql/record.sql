-- Stores outcomes, and gives those that nobody had stored before. Who stores the same ones at the same time comes in
-- the same order, so that neither waits for the other in a circle.
--
-- $1 version  $2 questions, one for each outcome or one for all  $3 places of queries  $4 states  $5 labels  $6 histograms as text or NULL
-- $7 charge
INSERT INTO noisegate.pate_answer (ensemble_id, question, query_no, status, label, histogram, charge_id)
SELECT $1, ($2::bytea[])[CASE WHEN cardinality($2::bytea[]) = 1 THEN 1 ELSE place END] AS question, query_no, status, label, histogram::bigint[], $7
FROM unnest($3::integer[], $4::text[], $5::integer[], $6::text[]) WITH ORDINALITY AS o (query_no, status, label, histogram, place)
ORDER BY question, query_no
ON CONFLICT DO NOTHING
RETURNING question, query_no
