-- Makes outcomes that are stored a buyer's own, after sql/record.sql and in its order, and gives those that were not
-- before.
--
-- $1 version  $2 questions, one for each query or one for all  $3 places of queries  $4 buyer  $5 charge
INSERT INTO noisegate.pate_purchase (ensemble_id, buyer, question, query_no, charge_id)
SELECT $1, $4, ($2::bytea[])[CASE WHEN cardinality($2::bytea[]) = 1 THEN 1 ELSE place END] AS question, query_no, $5
FROM unnest($3::integer[]) WITH ORDINALITY AS o (query_no, place)
ORDER BY question, query_no
ON CONFLICT DO NOTHING
RETURNING question, query_no
