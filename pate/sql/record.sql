-- Stores outcomes, and gives the places, from 1, of those that nobody had stored before. Who stores the same ones at the same time comes
-- in the same order, so that neither waits for the other in a circle.
--
-- $1 version  $2 questions, one for each outcome or one for all  $3 places of queries  $4 states  $5 labels  $6 histograms as text or NULL
-- $7 charge
WITH outcome AS (
	SELECT ($2::bytea[])[CASE WHEN cardinality($2::bytea[]) = 1 THEN 1 ELSE place END] AS question, query_no, status, label, histogram, place
	FROM unnest($3::integer[], $4::text[], $5::integer[], $6::text[]) WITH ORDINALITY AS o (query_no, status, label, histogram, place)
), stored AS (
	INSERT INTO noisegate.pate_answer (ensemble_id, question, query_no, status, label, histogram, charge_id)
	SELECT $1, question, query_no, status, label, histogram::bigint[], $7
	FROM outcome
	ORDER BY question, query_no
	ON CONFLICT DO NOTHING
	RETURNING question, query_no
)
SELECT outcome.place FROM outcome JOIN stored USING (question, query_no)
